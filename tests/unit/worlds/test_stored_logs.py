"""Logs in files: what was written is found again, whatever was done before, in Kafka's formats."""

import itertools
import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from emulator.kafka.model.config import KafkaConfig
from emulator.kafka.model.errors import KafkaError
from emulator.kafka.model.offset_log import Batch, OffsetLog
from emulator.kafka.profiles.base import profiles
from emulator.scenario.errors import UserError
from emulator.trace.values import TopicPartition
from emulator.worlds.storage.files import OperatingSystemFiles
from emulator.worlds.storage.modelled_disk import Fault, ModelledDisk
from emulator.worlds.storage.stored_logs import StoredDirectory, claim, stored_disk
from emulator.worlds.wire.records import filled

FILES = OperatingSystemFiles()
ORDERS = TopicPartition("orders", 0)
DATA = {n: filled(n, 200, 0) for n in (1, 2, 3)}

Opened = Callable[..., StoredDirectory]
STEP = st.one_of(
    st.tuples(st.just("append"), st.sampled_from([1, 2, 3])),
    st.tuples(st.just("epoch"), st.integers(1, 3)),
    st.tuples(st.just("truncate"), st.integers(0, 12)),
    st.tuples(st.just("anew"), st.integers(0, 20)),
    st.tuples(st.just("checkpoint"), st.just(0)),
)


@pytest.fixture
def opened() -> Iterator[Opened]:
    """Directories whose files are let go at the end."""
    directories: list[StoredDirectory] = []

    def open_(folder: Path, segment_bytes: int = 1 << 30) -> StoredDirectory:
        directories.append(StoredDirectory(FILES, 0, folder, segment_bytes))
        return directories[-1]

    yield open_
    for directory in directories:
        directory.close()


def shape(log: OffsetLog) -> object:
    batches = [(b.base_offset, b.next_offset, b.leader_epoch) for b in log.batches]
    return batches, list(log.epochs.entries), log.log_start_offset


def take(log: OffsetLog, step: tuple[str, int], epoch: int) -> int:
    """Do it; the epoch from then on."""
    match step:
        case ("append", count):
            log.append_as_leader(count, len(DATA[count]), epoch, DATA[count])
        case ("epoch", more):
            epoch += more
            log.epochs.assign(epoch, log.log_end_offset)
        case ("truncate", offset):
            log.truncate_to(offset)
        case ("anew", offset):
            log.truncate_fully_and_start_at(offset)
    return epoch


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(steps=st.lists(STEP, max_size=15))
@example(steps=[("append", 2), ("truncate", 1), ("append", 1)])  # it leaves a gap before the last
def test_what_is_found_again_is_what_was_there(
    steps: list[tuple[str, int]],
    tmp_path_factory: pytest.TempPathFactory,
    opened: Opened,
) -> None:
    """After any steps, with segments of two batches: a process that was killed loses nothing."""
    folder = tmp_path_factory.mktemp("data")
    directory, plain, epoch = opened(folder, 450), OffsetLog(), 0
    log = directory.open_log(ORDERS)
    for step in steps:
        if step[0] == "checkpoint":
            directory.checkpoint({ORDERS: log.log_end_offset})
        take(plain, step, epoch)
        epoch = take(log, step, epoch)
    assert shape(log) == shape(plain)
    again = opened(folder, 450)
    found = again.logs[ORDERS]
    kept = shape(found)[0], shape(log)[0]  # type: ignore[index]
    assert kept[0] == kept[1]
    assert again.checkpointed_high_watermarks == directory.checkpointed_high_watermarks


def test_files_are_laid_out_as_kafka_does_it(tmp_path: Path, opened: Opened) -> None:
    directory = opened(tmp_path)
    log = directory.open_log(ORDERS)
    log.epochs.assign(3, 0)
    log.append_as_leader(2, 200, 3, DATA[2])
    log.append_as_leader(1, 200, 5, DATA[1])
    directory.checkpoint({ORDERS: 2})
    assert sorted(path.name for path in (tmp_path / "orders-0").iterdir()) == [
        "00000000000000000000.log",
        "leader-epoch-checkpoint",
    ]
    assert (tmp_path / "orders-0" / "leader-epoch-checkpoint").read_text() == "0\n2\n3 0\n5 2\n"
    assert (tmp_path / "replication-offset-checkpoint").read_text() == "0\n1\norders 0 2\n"


def test_half_a_batch_at_the_end_is_cut_off_and_said_and_kept(
    tmp_path: Path, opened: Opened
) -> None:
    log = opened(tmp_path).open_log(ORDERS)
    log.append_as_leader(2, 200, 0, DATA[2])
    segment = tmp_path / "orders-0" / "00000000000000000000.log"
    whole = segment.read_bytes()
    for name in ("", "-2"):
        segment.write_bytes(whole + whole[:-3])
        messages: list[str] = []
        directory = StoredDirectory(FILES, 0, tmp_path, log=messages.append)
        found = directory.logs[ORDERS]
        assert found.log_end_offset == 2
        assert segment.read_bytes() == whole
        torn = segment.with_name(f"{segment.name}.torn{name}")
        assert torn.read_bytes() == whole[:-3]
        (message,) = messages
        assert message == (
            f"log {tmp_path}/orders-0: {segment.name} at byte {len(whole)} (offset 2): a batch of"
            f" which there are only {len(whole) - 3} bytes; no whole record follows,"
            f" {len(whole) - 3} bytes are cut off, kept in {torn.name}"
        )
    found.append_as_leader(1, 200, 0, DATA[1])
    directory.close()
    assert opened(tmp_path).logs[ORDERS].log_end_offset == 3


def three_batches(folder: Path) -> Path:
    """Records 0 to 5, two in a batch; the segment."""
    directory = StoredDirectory(FILES, 0, folder)
    for _ in range(3):
        directory.open_log(ORDERS).append_as_leader(2, len(DATA[2]), 4, DATA[2])
    directory.close()
    return folder / "orders-0" / f"{0:020}.log"


@pytest.mark.parametrize(
    ("byte", "problem"),
    [
        (len(DATA[2]) + 100, "the checksum of the batch at 2 does not fit"),
        (len(DATA[2]) + 1, "a batch has offset 71776119061217282, not 2"),
        (len(DATA[2]) + 12, "the batch at 2 has leader epoch -16777212"),
        (len(DATA[2]) + 13, "the batch at 2 has leader epoch 16711684"),
        (len(DATA[2]) + 8, "a batch of -16777"),
        (len(DATA[2]) + 16, "record format -3"),
    ],
)
def test_a_wrong_byte_in_the_middle_of_a_log_is_said_to_be_corruption(
    byte: int, problem: str, tmp_path: Path
) -> None:
    """There is a whole batch behind it: nothing was torn here."""
    segment = three_batches(tmp_path)
    data = bytearray(segment.read_bytes())
    data[byte] ^= 0xFF
    segment.write_bytes(data)
    messages: list[str] = []
    directory = StoredDirectory(FILES, 0, tmp_path, log=messages.append)
    assert directory.logs[ORDERS].log_end_offset == 2
    assert segment.with_name(f"{segment.name}.torn").read_bytes() == data[len(DATA[2]) :]
    (message,) = messages
    assert f"corruption in {segment.name} at byte {len(DATA[2])} (offset 2): {problem}" in message
    assert "4 records up to offset 5 are cut off with it" in message


def test_a_lost_segment_in_the_middle_is_said_to_be_corruption(
    tmp_path: Path, opened: Opened
) -> None:
    log = opened(tmp_path, 450).open_log(ORDERS)
    for _ in range(6):
        log.append_as_leader(1, len(DATA[1]), 0, DATA[1])
    (tmp_path / "orders-0" / f"{2:020}.log").unlink()
    messages: list[str] = []
    directory = StoredDirectory(FILES, 0, tmp_path, 450, messages.append)
    assert directory.logs[ORDERS].log_end_offset == 2
    (message,) = messages
    assert "it begins at offset 4, and the log ends at 2; 4 records up to offset 5" in message
    assert f"{4:020}.log.torn" in message


def test_a_process_without_descriptors_does_not_blame_the_directory(tmp_path: Path) -> None:
    """Nothing is written, and everything when there are some again."""
    messages: list[str] = []
    directory = StoredDirectory(FILES, 0, tmp_path, 450, messages.append)
    log = directory.open_log(ORDERS)
    log.append_as_leader(1, len(DATA[1]), 0, DATA[1])
    log.append_as_leader(1, len(DATA[1]), 0, DATA[1])
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.dup(0)
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, before[1]))
    try:
        for epoch in (0, 1):  # a new segment; and a new epoch
            with pytest.raises(KafkaError, match="Too many open files"):
                log.append_as_leader(1, len(DATA[1]), epoch, DATA[1])
        with pytest.raises(KafkaError, match="Too many open files"):
            directory.open_log(TopicPartition("orders", 1))
        directory.checkpoint({ORDERS: 2})
        assert all("Too many open files: not written (ulimit -n)" in one for one in messages)
        with pytest.raises(OSError, match="Too many open files"):
            StoredDirectory(FILES, 0, tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert not directory.failed
    assert log.log_end_offset == 2
    log.append_as_leader(1, len(DATA[1]), 1, DATA[1])
    directory.checkpoint({ORDERS: 3})
    directory.close()
    again = StoredDirectory(FILES, 0, tmp_path, 450)
    assert shape(again.logs[ORDERS]) == shape(log)
    assert again.checkpointed_high_watermarks == {ORDERS: 3}


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(at=st.integers(0, 6 * 200), torn=st.booleans())
def test_whatever_became_of_a_byte_what_is_before_it_is_found_again(
    at: int, torn: bool, tmp_path_factory: pytest.TempPathFactory, opened: Opened
) -> None:
    """Six batches, two per segment. A segment is cut inside a batch, or a byte is changed: all
    complete batches before it are loaded, nothing after it, and the log continues from there."""
    folder = tmp_path_factory.mktemp("data")
    log = opened(folder, 450).open_log(ORDERS)
    for _ in range(6):
        log.append_as_leader(1, len(DATA[1]), 0, DATA[1])
    struck, inside = divmod(min(at, 6 * len(DATA[1]) - 1), 2 * len(DATA[1]))
    segment = sorted((folder / "orders-0").glob("*.log"))[struck]
    data = bytearray(segment.read_bytes())
    if torn:
        del data[inside:]
    else:
        data[inside] ^= 0xFF
    segment.write_bytes(data)
    assume(inside % len(DATA[1]) or not torn)
    # A higher epoch at the very end of a log looks like one whose file was lost.
    assume(torn or not (struck == 2 and inside - len(DATA[1]) in (13, 14, 15)))
    found = opened(folder, 450).logs[ORDERS]
    assert found.log_end_offset == 2 * struck + inside // len(DATA[1])
    found.append_as_leader(3, len(DATA[3]), 0, DATA[3])
    again = opened(folder, 450).logs[ORDERS]
    assert shape(again) == shape(found)
    named = {int(path.stem) for path in (folder / "orders-0").glob("*.log")}
    assert named <= {batch.base_offset for batch in again.batches}


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    name=st.sampled_from(["replication-offset-checkpoint", "orders-0/leader-epoch-checkpoint"]),
    left=st.integers(0, 20),
    rubbish=st.binary(max_size=6),
)
def test_a_checkpoint_is_found_again_or_its_directory_has_failed_and_says_why(
    name: str,
    left: int,
    rubbish: bytes,
    tmp_path_factory: pytest.TempPathFactory,
    opened: Opened,
) -> None:
    """Cut off, and with something else behind it."""
    folder = tmp_path_factory.mktemp("data")
    directory = opened(folder)
    log = directory.open_log(ORDERS)
    log.epochs.assign(3, 0)
    log.append_as_leader(2, 200, 3, DATA[2])
    directory.checkpoint({ORDERS: 2})
    whole = (folder / name).read_bytes()
    (folder / name).write_bytes(whole[:left] + rubbish)
    found = opened(folder)
    assert found.failed == bool(found.why)
    if found.failed:
        assert name in found.why
        assert not found.logs
    else:
        assert found.logs[ORDERS].log_end_offset == 2
    (folder / name).write_bytes(whole)
    assert opened(folder).checkpointed_high_watermarks == {ORDERS: 2}


def test_a_broker_is_told_which_directory_is_offline_and_why(tmp_path: Path) -> None:
    config = KafkaConfig.of(profiles()["2.6"].values, {"log.dirs": "a,b"})
    stored_disk(FILES, tmp_path, config, frozenset(), print)
    (tmp_path / "log-1" / "replication-offset-checkpoint").write_text("0\n2\norders 0 7\n")
    told: list[str] = []
    disk = stored_disk(FILES, tmp_path, config, frozenset(), told.append)
    assert [one.failed for one in disk.directories] == [False, True]
    (line,) = told
    assert line.startswith(f"log directory {tmp_path / 'log-1'} is offline: ")
    assert "replication-offset-checkpoint: line 2: there are 1 entries; " in line


def test_what_is_deleted_is_gone(tmp_path: Path, opened: Opened) -> None:
    directory = opened(tmp_path)
    directory.open_log(ORDERS).append_as_leader(1, 200, 0, DATA[1])
    directory.checkpoint({ORDERS: 1})
    directory.remove_log(ORDERS)
    again = opened(tmp_path)
    assert (again.logs, again.checkpointed_high_watermarks) == ({}, {})


def test_a_directory_that_cannot_be_written_has_failed(tmp_path: Path, opened: Opened) -> None:
    directory = opened(tmp_path)
    log = directory.open_log(ORDERS)
    (tmp_path / "orders-0").rename(tmp_path / "elsewhere")
    (tmp_path / "orders-0").touch()
    with pytest.raises(KafkaError, match="KAFKA_STORAGE_ERROR"):
        log.append_as_leader(1, 200, 0, Batch(0, 1, 1, 0, DATA[1]).data)
    assert directory.failed


def test_a_log_that_cannot_be_made_takes_its_directory_with_it(
    tmp_path: Path, opened: Opened
) -> None:
    directory = opened(tmp_path)
    (tmp_path / "orders-0").touch()
    with pytest.raises(KafkaError, match="KAFKA_STORAGE_ERROR"):
        directory.open_log(ORDERS)
    assert directory.failed
    assert not directory.logs


# -- disks that are full ---------------------------------------------------------------------------


@contextmanager
def files_end_at(size: int) -> Iterator[None]:
    """The kernel takes what fits, and then refuses with EFBIG."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


DATA_FOLDER = Path("/data")


def zero(_: int) -> int:
    """The least of what can be drawn."""
    return 0


def test_a_short_write_is_continued_until_it_is_whole() -> None:
    disk = ModelledDisk(lambda below: min(6, below - 1))
    disk.faults.append(Fault(code=0, count=0))
    directory = StoredDirectory(disk, 0, DATA_FOLDER)
    log = directory.open_log(ORDERS)
    log.append_as_leader(2, len(DATA[2]), 3, DATA[2])
    log.append_as_leader(1, len(DATA[1]), 5, DATA[1])
    directory.checkpoint({ORDERS: 2})
    assert not directory.failed
    again = StoredDirectory(disk, 0, DATA_FOLDER)
    assert shape(again.logs[ORDERS]) == shape(log)
    assert again.checkpointed_high_watermarks == {ORDERS: 2}


@pytest.mark.parametrize("fits", [0, 1, 100, len(DATA[1]) - 1])
def test_a_batch_that_does_not_fit_is_not_there_and_takes_its_directory_offline(
    fits: int, tmp_path: Path
) -> None:
    told: list[str] = []
    failures: list[object] = []
    directory = StoredDirectory(FILES, 0, tmp_path, log=told.append)
    directory.on_failure = failures.append
    log = directory.open_log(ORDERS)
    log.append_as_leader(2, len(DATA[2]), 0, DATA[2])
    with files_end_at(len(DATA[2]) + fits), pytest.raises(KafkaError, match="KAFKA_STORAGE_ERROR"):
        log.append_as_leader(1, len(DATA[1]), 0, DATA[1])
    assert log.log_end_offset == 2
    assert (tmp_path / "orders-0" / f"{0:020}.log").stat().st_size == len(DATA[2])
    assert directory.failed
    assert failures == [directory]
    (line,) = told
    assert line.startswith(f"log directory {tmp_path} is offline: ")
    assert "orders-0: File too large; nothing in it is served until" in line
    directory.close()


FILLING = [
    *[("append", 1), ("checkpoint", 1), ("append", 1), ("epoch", 2), ("append", 1)],
    *[("append", 1), ("checkpoint", 2), ("truncate", 3), ("epoch", 1), ("append", 1)],
]


def fill(directory: StoredDirectory) -> list[object]:
    """Write as far as possible, like the broker: nothing after a failure. Returns the batches that
    the next process may load: if a truncation fails, they may be there or not."""
    log, plain, epoch = directory.open_log(ORDERS), OffsetLog(), 0
    for step in FILLING:
        before = shape(plain)[0]  # type: ignore[index]
        try:
            if step[0] == "checkpoint":
                directory.checkpoint({ORDERS: log.log_end_offset})
            now = take(log, step, epoch)
        except KafkaError:
            if step[0] == "truncate":
                take(plain, step, epoch)
            break
        take(plain, step, epoch)
        before, epoch = shape(plain)[0], now  # type: ignore[index]
        if directory.failed:
            break
    after = shape(plain)[0]  # type: ignore[index]
    assert shape(log)[0] == after  # type: ignore[index]
    assert log.high_watermark <= log.log_end_offset
    return [before, after]


@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.slow), 17])
@pytest.mark.parametrize("cuts", [True, False])
def test_wherever_a_disk_is_full_what_was_acknowledged_is_found_again_and_nothing_else(
    cuts: bool, step: int
) -> None:
    """With room for no byte, for one, and so on until there is room for all (`make test` takes
    every 17th). A partial batch that cannot be truncated is truncated by the next process. Once
    there is space again the log continues."""
    for left in itertools.count(step=step):
        messages: list[str] = []
        disk = ModelledDisk(zero)
        disk.free_bytes = left
        if not cuts:
            disk.faults.append(Fault("ftruncate", count=0))
        directory = StoredDirectory(disk, 0, DATA_FOLDER, 450, messages.append)
        possible = fill(directory)
        assert len(messages) == directory.failed
        disk.mend()
        again = StoredDirectory(disk, 0, DATA_FOLDER, 450)
        log = again.open_log(ORDERS)
        assert shape(log)[0] in possible  # type: ignore[index]
        assert again.checkpointed_high_watermarks == directory.checkpointed_high_watermarks
        log.append_as_leader(3, len(DATA[3]), 9, DATA[3])
        third = StoredDirectory(disk, 0, DATA_FOLDER, 450)
        assert shape(third.logs[ORDERS]) == shape(log)
        if not directory.failed:
            break
    assert left > 3 * len(DATA[1])  # as many are there at a time: what is cut off makes room


def test_a_folder_is_not_claimed_by_half() -> None:
    """A meta.properties cut short by a full disk does not prevent its broker's later start."""
    disk = ModelledDisk(zero)
    disk.free_bytes = 9
    refused = pytest.raises(UserError, match="No space left on device")
    with refused, claim(disk, DATA_FOLDER, 1):
        pass
    disk.free_bytes = None
    with claim(disk, DATA_FOLDER, 1):
        pass
    disk.free_bytes = 0
    with claim(disk, DATA_FOLDER, 1):
        pass
    assert disk.read(DATA_FOLDER / "meta.properties") == b"version=0\nbroker.id=1\n"


def test_a_directory_that_cannot_be_read_at_start_is_offline_alone(tmp_path: Path) -> None:
    config = KafkaConfig.of(profiles()["2.6"].values, {"log.dirs": "a,b"})
    stored_disk(FILES, tmp_path, config, frozenset(), print)
    (tmp_path / "log-1" / "orders-0" / "leader-epoch-checkpoint").mkdir(parents=True)
    told: list[str] = []
    disk = stored_disk(FILES, tmp_path, config, frozenset(), told.append)
    assert [one.failed for one in disk.directories] == [False, True]
    assert "Is a directory" in told[0]


def test_a_folder_belongs_to_one_broker(tmp_path: Path) -> None:
    for _ in range(2):
        with claim(FILES, tmp_path, 1):
            pass
    with pytest.raises(UserError, match="another broker"), claim(FILES, tmp_path, 2):
        pass


def test_a_folder_belongs_to_one_process_until_that_ends(tmp_path: Path) -> None:
    in_use = pytest.raises(UserError, match="a running broker uses it")
    with claim(FILES, tmp_path, 1), in_use, claim(FILES, tmp_path, 1):
        pass
    with claim(FILES, tmp_path, 1):
        pass


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(content=st.one_of(st.binary(max_size=40), st.just(b"version=0\nbroker.id=\xff\n")))
def test_meta_properties_with_anything_else_in_it_is_the_users_to_mend(
    content: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("data")
    (folder / "meta.properties").write_bytes(content)
    with pytest.raises(UserError, match=r"meta\.properties: damaged"), claim(FILES, folder, 1):
        pass
    assert (folder / "meta.properties").read_bytes() == content


def test_data_are_for_their_owner_alone(tmp_path: Path, opened: Opened) -> None:
    data = tmp_path / "data"
    with claim(FILES, data, 1):
        directory = opened(data)
        directory.open_log(ORDERS).append_as_leader(1, 200, 3, DATA[1])
        directory.checkpoint({ORDERS: 1})
        modes = {path.relative_to(tmp_path).as_posix(): path.stat() for path in data.rglob("*")}
    assert data.stat().st_mode & 0o777 == 0o700
    assert modes.pop("data/orders-0").st_mode & 0o777 == 0o700
    assert {path: oct(stat.st_mode & 0o777) for path, stat in modes.items()} == dict.fromkeys(
        [
            "data/.lock",
            "data/meta.properties",
            "data/orders-0/00000000000000000000.log",
            "data/orders-0/leader-epoch-checkpoint",
            "data/replication-offset-checkpoint",
        ],
        "0o600",
    )


def test_each_log_directory_has_its_folder(tmp_path: Path) -> None:
    config = KafkaConfig.of(profiles()["2.6"].values, {"log.dirs": "a,b"})
    assert len(stored_disk(FILES, tmp_path, config, frozenset(), print).directories) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log-0", "log-1"]
