"""Logs in files: what was written is found again, whatever was done before, in Kafka's formats."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from emulator.kafka.model.config import KafkaConfig
from emulator.kafka.model.errors import KafkaError
from emulator.kafka.model.offset_log import Batch, OffsetLog
from emulator.kafka.profiles.base import profiles
from emulator.scenario.errors import UserError
from emulator.trace.values import TopicPartition
from emulator.worlds.processes.stored_logs import StoredDirectory, claim, stored_disk
from emulator.worlds.wire.records import filled

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
        directories.append(StoredDirectory(0, folder, segment_bytes))
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


def test_half_a_batch_at_the_end_is_cut_off(tmp_path: Path, opened: Opened) -> None:
    log = opened(tmp_path).open_log(ORDERS)
    log.append_as_leader(2, 200, 0, DATA[2])
    segment = tmp_path / "orders-0" / "00000000000000000000.log"
    whole = segment.read_bytes()
    segment.write_bytes(whole + whole[:-3])
    found = opened(tmp_path).logs[ORDERS]
    assert found.log_end_offset == 2
    assert segment.read_bytes() == whole
    found.append_as_leader(1, 200, 0, DATA[1])
    assert opened(tmp_path).logs[ORDERS].log_end_offset == 3


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(at=st.integers(0, 6 * 200), torn=st.booleans())
def test_whatever_became_of_a_byte_what_is_before_it_is_found_again(
    at: int, torn: bool, tmp_path_factory: pytest.TempPathFactory, opened: Opened
) -> None:
    """Six batches, two in a segment. A segment is cut off inside a batch, or a byte is another: all
    whole batches before are there, nothing behind, and the log goes on from there."""
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
    assume(inside % len(DATA[1]) if torn else inside % len(DATA[1]) not in UNCHECKED)
    found = opened(folder, 450).logs[ORDERS]
    assert found.log_end_offset == 2 * struck + inside // len(DATA[1])
    found.append_as_leader(3, len(DATA[3]), 0, DATA[3])
    again = opened(folder, 450).logs[ORDERS]
    assert shape(again) == shape(found)
    named = {int(path.stem) for path in (folder / "orders-0").glob("*.log")}
    assert named <= {batch.base_offset for batch in again.batches}


UNCHECKED = (*range(8), *range(12, 16))
"""Offset and leader epoch, which the leader writes into a batch's head: no checksum has them."""


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
    stored_disk(tmp_path, config, print)
    (tmp_path / "log-1" / "replication-offset-checkpoint").write_text("0\n2\norders 0 7\n")
    told: list[str] = []
    disk = stored_disk(tmp_path, config, told.append)
    assert [one.failed for one in disk.directories] == [False, True]
    (line,) = told
    assert line.startswith(f"log directory {tmp_path / 'log-1'} is offline: ")
    assert line.endswith("replication-offset-checkpoint: line 2: there are 1 entries")


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


def test_a_folder_belongs_to_one_broker(tmp_path: Path) -> None:
    claim(tmp_path, 1)
    claim(tmp_path, 1)
    with pytest.raises(UserError, match="another broker"):
        claim(tmp_path, 2)


def test_each_log_directory_has_its_folder(tmp_path: Path) -> None:
    config = KafkaConfig.of(profiles()["2.6"].values, {"log.dirs": "a,b"})
    assert len(stored_disk(tmp_path, config, print).directories) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log-0", "log-1"]
