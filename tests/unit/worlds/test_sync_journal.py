"""A crash of a process's machine: what it had synced is there, and nothing else of its logs."""

from __future__ import annotations

from itertools import takewhile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from emulator.kafka.model.offset_log import OffsetLog
from emulator.trace.values import TopicPartition
from emulator.worlds.storage.stored_logs import StoredDirectory
from emulator.worlds.storage.sync_journal import JournalledFiles, lose_unsynced
from emulator.worlds.wire.records import filled

ORDERS = TopicPartition("orders", 0)
RECORD = filled(1, 200, 0)
A_SEGMENT = 4
"""Records."""
STEPS = st.lists(st.sampled_from(["append", "append", "flush", "truncate", "kill"]), max_size=25)


def append(log: OffsetLog) -> None:
    log.append_as_leader(1, len(RECORD), 0, RECORD)


class Process:
    """A broker's log, and what it has synced."""

    def __init__(self, folder: Path) -> None:
        self._data, self._journal = folder / "data", folder / "synced.ndjson"
        self.start()

    def start(self) -> None:
        files = JournalledFiles(self._journal)
        self._directory = StoredDirectory(files, 0, self._data, A_SEGMENT * len(RECORD))
        self.log = self._directory.open_log(ORDERS)

    def kill(self, *, machine: bool) -> None:
        self._directory.close()
        if machine:
            lose_unsynced(self._data, self._journal)
        self.start()


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(steps=STEPS)
@example(steps=["append"] * 4 + ["kill", "append", "flush"])
def test_what_was_synced_survives_a_crash_and_all_survives_a_kill(
    steps: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    process = Process(tmp_path_factory.mktemp("crash"))
    synced = [0] * len(steps)  # of each segment: how many of its records are on the disk
    for step in steps:
        end = process.log.log_end_offset
        match step:
            case "append":
                append(process.log)
            case "flush":
                # A start sets the recovery point to the end of what it finds (Log.scala@2.6.3
                # recoverLog): segments before it are never synced again.
                if process.log.recovery_point < end:
                    for base in range(process.log.recovery_point // A_SEGMENT, len(synced)):
                        synced[base] = min(A_SEGMENT, max(0, end - base * A_SEGMENT))
                process.log.flush()
            case "truncate":
                process.log.truncate_to(max(0, end - 2))
                for base, records in enumerate(synced):
                    left = process.log.log_end_offset - base * A_SEGMENT
                    synced[base] = min(records, max(0, left))
            case _:
                process.kill(machine=False)
                assert process.log.log_end_offset == end
    process.kill(machine=True)
    whole = list(takewhile(A_SEGMENT.__eq__, synced))
    assert process.log.log_end_offset == sum(synced[: len(whole) + 1])


def test_a_log_whose_flush_forgets_to_sync_loses_everything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from emulator.worlds.storage.stored_logs import StoredLog

    monkeypatch.setattr(StoredLog, "flush", OffsetLog.flush)
    process = Process(tmp_path)
    append(process.log)
    process.log.flush()
    process.kill(machine=True)
    assert process.log.log_end_offset == 0
