"""A log directory that cannot be written: nothing is acknowledged from then on.

Sources: server/ReplicaManager.scala@2.6.3 LogDirFailureHandler, log/Log.scala@2.6.3
maybeHandleIOException.
"""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from emulator.kafka.broker.log_dirs import Disk
from emulator.kafka.model.errors import KafkaError
from emulator.kernel.rng import Stream
from emulator.trace import events
from emulator.worlds.storage.files import OperatingSystemFiles
from emulator.worlds.storage.modelled_disk import Fault, ModelledDisk
from emulator.worlds.storage.stored_logs import StoredDirectory
from emulator.worlds.wire.records import filled
from tests.interaction.hosting import ORDERS_0, Hosting, leader_and_isr, produce, state_of

DATA = filled(1, 200, 0)
ALONE = state_of(isr=(1,), replicas=(1,))


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    disk = Disk()
    disk.directories = [StoredDirectory(OperatingSystemFiles(), 0, tmp_path)]
    yield disk
    disk.directories[0].close()


@contextmanager
def half_a_batch_fits() -> Iterator[None]:
    """Behind a first one."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(DATA) * 3 // 2, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_after_a_write_that_failed_all_are_refused_also_when_there_is_space_again(
    disk: Disk, tmp_path: Path
) -> None:
    """The failure has not been handled yet."""
    with Hosting(ALONE, disk=disk) as play:
        play >> produce(data=DATA) << "hw 1" << "produce: NONE at 0"
        with half_a_batch_fits():
            play >> produce(data=DATA) << "produce: KAFKA_STORAGE_ERROR"
        assert disk.logs[ORDERS_0].log_end_offset == 1
        play >> produce(data=DATA) << "produce: KAFKA_STORAGE_ERROR"
    (found,) = StoredDirectory(OperatingSystemFiles(), 0, tmp_path).logs.values()
    assert found.log_end_offset == 1


def test_a_broker_halts_with_the_first_write_that_fails_in_its_last_directory(disk: Disk) -> None:
    with Hosting(ALONE, disk=disk) as play:
        play.start_log_dir_failure_handler()
        play >> produce(data=DATA) << "hw 1" << "produce: NONE at 0"
        with half_a_batch_fits():
            play >> produce(data=DATA) << "produce: KAFKA_STORAGE_ERROR"
        play << "halts: all log directories have failed"


def test_a_log_in_a_failed_directory_is_not_dropped_to_begin_elsewhere(disk: Disk) -> None:
    with Hosting(ALONE, disk=disk) as play:
        play >> produce(data=DATA) << "hw 1" << "produce: NONE at 0"
        disk.directories[0].failed = True
        with pytest.raises(KafkaError, match="KAFKA_STORAGE_ERROR"):
            play.hosted().truncate_fully_and_start_at(5)
        assert play.hosted().log is disk.logs[ORDERS_0]
        assert disk.logs[ORDERS_0].log_end_offset == 1


def test_a_record_whose_flush_failed_is_not_acknowledged_but_appended(disk: Disk) -> None:
    """It is in the file: the next start reads it."""
    files = ModelledDisk(Stream(1).below, lambda: 0)
    disk.directories = [StoredDirectory(files, 0, Path("/data"))]
    with Hosting(ALONE, disk=disk) as play:
        seen: list[events.AnyEvent] = []
        play.sink.listen(seen.append)
        disk.logs[ORDERS_0].flush_interval_messages = 1
        files.faults.append(Fault("fsync"))
        play >> produce(data=DATA) << "produce: KAFKA_STORAGE_ERROR"
        (appended,) = [one for one in seen if isinstance(one, events.RecordsAppended)]
        assert (appended.base_offset, appended.leo) == (0, 1)
    disk.directories[0].close()
    (found,) = StoredDirectory(files, 0, Path("/data")).logs.values()
    assert found.log_end_offset == 1


def test_a_leader_whose_epoch_cannot_be_written_does_not_lead(disk: Disk, tmp_path: Path) -> None:
    with Hosting(state_of(leader=2), disk=disk) as play:
        (tmp_path / "orders-0" / "leader-epoch-checkpoint.tmp").mkdir()
        play >> leader_and_isr(state_of(epoch=5)) << "LeaderAndIsr: NONE KAFKA_STORAGE_ERROR"
        assert not play.hosted().is_leader
    assert disk.directories[0].failed
