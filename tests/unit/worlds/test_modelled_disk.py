"""A modelled disk: without faults it is the operating system's; with them it does what disks do."""

import errno
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from emulator.kernel.rng import Stream
from emulator.worlds.storage.files import Files, OpenFile, OperatingSystemFiles
from emulator.worlds.storage.modelled_disk import PAGE, WRITEBACK_US, Fault, ModelledDisk

NAME = st.sampled_from(["a", "b", "d", "d/a", "d/b", "d/e", "d/e/a", "missing/a"])
CALL = st.one_of(
    st.tuples(st.just("open"), NAME, st.sampled_from(["append", "replace", "new"])),
    st.tuples(st.just("write"), st.integers(0, 5), st.integers(0, 9000)),
    st.tuples(st.just("cut"), st.integers(0, 5), st.integers(0, 9000)),
    st.tuples(st.just("fsync"), st.integers(0, 5)),
    st.tuples(st.just("close"), st.integers(0, 5)),
    st.tuples(
        st.sampled_from(
            [
                *["read", "list", "exists", "is_directory", "make_directory", "unlink"],
                *["remove_directory", "fsync_directory"],
            ]
        ),
        NAME,
    ),
    st.tuples(st.just("truncate"), NAME, st.integers(0, 9000)),
    st.tuples(st.just("rename"), NAME, st.sampled_from(["a", "b", "e"])),
)


class Played:
    """One file system, the files that are open in it, and what became of each call."""

    def __init__(self, files: Files, top: Path) -> None:
        self.files, self.top = files, top
        self.handles: list[OpenFile] = []
        self.results: list[object] = []

    def do(self, call: tuple[Any, ...]) -> None:
        try:
            result = self._do(*call)
        except OSError as error:
            result = error.errno
        self.results.append((call, result))

    def _do(self, name: str, *given: Any) -> object:
        match name:
            case "open":
                self.handles.append(self.files.open(self.top / given[0], given[1]))
                return None
            case "write" | "cut" | "fsync" | "close":
                if not self.handles:
                    return None
                handle = self.handles[given[0] % len(self.handles)]
                if name == "write":
                    return handle.write(bytes([given[1] % 251 + 1]) * given[1])
                if name == "cut":
                    return handle.truncate(given[1])
                if name == "fsync":
                    return handle.fsync()
                self.handles.remove(handle)
                return handle.close()
            case "rename":
                path = self.top / given[0]
                return self.files.rename(path, path.with_name(given[1]))
            case "truncate":
                return self.files.truncate(self.top / given[0], given[1])
        return getattr(self.files, name)(self.top / given[0])

    def tree(self, folder: Path | None = None) -> dict[str, object]:
        folder = folder or self.top
        return {
            name: self.tree(folder / name)
            if self.files.is_directory(folder / name)
            else self.files.read(folder / name)
            for name in self.files.list(folder)
        }

    def close(self) -> None:
        for handle in self.handles:
            handle.close()


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(calls=st.lists(CALL, max_size=40))
@example(
    calls=[
        ("make_directory", "d/e"),
        ("open", "a", "new"),
        ("write", 0, 5000),
        ("rename", "a", "e"),
    ]
)
@example(calls=[("open", "a", "append"), ("unlink", "a"), ("write", 0, 7), ("open", "a", "append")])
@example(
    calls=[
        ("make_directory", "d"),
        ("open", "a", "new"),
        ("rename", "d", "a"),
        ("rename", "a", "d"),
    ]
)
def test_without_faults_it_is_the_operating_systems(
    calls: list[tuple[Any, ...]], tmp_path: Path
) -> None:
    """The same calls: the same results, the same errors, the same bytes."""
    folder = tmp_path / "top"
    folder.mkdir()
    disk = ModelledDisk(lambda _: 0)
    disk.make_directory(Path("/top"))
    both = [Played(OperatingSystemFiles(), folder), Played(disk, Path("/top"))]
    try:
        for played in both:
            for call in calls:
                played.do(call)
        assert both[0].results == both[1].results
        assert both[0].tree() == both[1].tree()
    finally:
        for played in both:
            played.close()
        shutil.rmtree(folder)


def on_a_disk(seed: int = 0, now_us: list[int] | None = None) -> ModelledDisk:
    time = now_us or [0]
    return ModelledDisk(Stream(seed).below, lambda: time[0])


def write(disk: ModelledDisk, name: str, data: bytes, *, sync: bool = True) -> Path:
    path = Path("/") / name
    file = disk.open(path, "append")
    file.write(data)
    if sync:
        file.fsync()
        disk.fsync_directory(path.parent)
    return path


@given(seed=st.integers(0, 999), synced=st.integers(0, 9000), more=st.integers(0, 9000))
def test_a_crash_keeps_what_was_synced_and_no_byte_that_nobody_wrote(
    seed: int, synced: int, more: int
) -> None:
    """Behind it: what was written, or zeros where a length came to the disk and a page did not."""
    disk = on_a_disk(seed)
    path = write(disk, "a", b"s" * synced)
    write(disk, "a", b"m" * more, sync=False)
    disk.crash()
    left = disk.read(path)
    assert left[:synced] == b"s" * synced
    assert len(left) <= synced + more
    assert set(left[synced:]) <= set(b"m\0")


def after_crashes(seeds: int) -> set[bytes]:
    """The remains of three unsynced pages, after a synced one, once a crash has happened; as
    letters."""
    seen = set()
    for seed in range(seeds):
        disk = on_a_disk(seed)
        path = write(disk, "a", b"s" * PAGE)
        write(disk, "a", b"m" * 3 * PAGE, sync=False)
        disk.crash()
        left = disk.read(path)[PAGE:]
        seen.add(bytes(left[at] for at in range(0, len(left), PAGE)))
    return seen


def test_pages_are_lost_in_any_order_and_torn_at_any_byte() -> None:
    shapes = after_crashes(400)
    assert {b"", b"mmm", b"m", b"\0m\0", b"\0\0m", b"m\0m"} <= shapes


def test_a_rename_is_durable_with_its_directory_alone() -> None:
    """Two renames in a directory: none, the first, or both; never the second alone."""
    seen = set()
    for seed in range(40):
        disk = on_a_disk(seed)
        for name in ("a", "b"):
            write(disk, f"{name}.tmp", name.encode())
        for name in ("a", "b"):
            disk.rename(Path(f"/{name}.tmp"), Path(f"/{name}"))
        disk.crash()
        seen.add(tuple(disk.list(Path("/"))))
        disk = on_a_disk(seed)
        path = write(disk, "a.tmp", b"a")
        disk.rename(path, Path("/a"))
        disk.fsync_directory(Path("/"))
        disk.crash()
        assert disk.list(Path("/")) == ["a"]
    assert seen == {("a.tmp", "b.tmp"), ("a", "b.tmp"), ("a", "b")}


@given(seed=st.integers(0, 99))
def test_what_is_old_enough_is_on_the_disk(seed: int) -> None:
    """The kernel writes back by itself: entries, lengths and pages."""
    now_us = [0]
    disk = on_a_disk(seed, now_us)
    path = write(disk, "a", b"o" * 5000, sync=False)
    now_us[0] = WRITEBACK_US
    write(disk, "a", b"n" * 5000, sync=False)
    disk.crash()
    assert disk.read(path)[:5000] == b"o" * 5000


@given(seed=st.integers(0, 99))
def test_a_failed_fsync_loses_its_pages_for_good(seed: int) -> None:
    """The kernel marks them clean: a second fsync succeeds, and writes nothing."""
    disk = on_a_disk(seed)
    path = write(disk, "a", b"s" * PAGE)
    file = disk.open(path, "append")
    file.write(b"m" * PAGE)
    disk.faults.append(Fault("fsync"))
    with pytest.raises(OSError, match="Input/output error"):
        file.fsync()
    file.fsync()
    assert disk.read(path)[PAGE:] == b"m" * PAGE
    disk.crash()
    assert set(disk.read(path)[PAGE:]) <= {0}


def test_a_full_disk_takes_a_part_and_then_refuses_until_there_is_space() -> None:
    disk = on_a_disk()
    disk.free_bytes = 10
    file = disk.open(Path("/a"), "append")
    assert file.write(b"x" * 16) == 10
    with pytest.raises(OSError, match="No space left") as refused:
        file.write(b"x")
    assert refused.value.errno == errno.ENOSPC
    file.truncate(4)
    assert file.write(b"y" * 16) == 6
    disk.unlink(Path("/a"))
    assert disk.free_bytes == 10


@pytest.mark.parametrize("count", [0, 1, 2])
def test_an_error_comes_so_often_or_for_ever(count: int) -> None:
    disk = on_a_disk()
    write(disk, "a", b"x")
    disk.faults.append(Fault("read", count=count, skip=1))
    results = []
    for _ in range(6):
        try:
            results.append(len(disk.read(Path("/a"))))
        except OSError as error:
            results.append(-(error.errno or 0))
    times = count or 5
    assert results == [1, *[-errno.EIO] * times, *[1] * (5 - times)]


def test_a_flipped_bit_is_one_bit_and_a_bad_sector_is_readable_again_when_mended() -> None:
    disk = on_a_disk(7)
    path = write(disk, "a", bytes(2000))
    disk.flip_bit(path)
    disk.crash()
    assert sum(byte.bit_count() for byte in disk.read(path)) == 1
    disk.break_sector(path)
    with pytest.raises(OSError, match="Input/output error"):
        disk.read(path)
    disk.mend()
    assert len(disk.read(path)) == 2000


def test_a_file_that_is_held_is_held_until_its_process_ends() -> None:
    disk = on_a_disk()
    disk.lock(Path("/lock"))
    with pytest.raises(BlockingIOError):
        disk.lock(Path("/lock"))
    disk.end_process()
    disk.lock(Path("/lock")).close()
    disk.lock(Path("/lock"))
