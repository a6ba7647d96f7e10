"""Bugs for brokers that a test starts: each breaks one promise, and `isr soak` must see it.

`planted` makes a folder that Python processes take a sitecustomize from (PYTHONPATH): in those of
`isr broker` it puts one of these functions into effect. The product knows nothing of it.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

ROOT = Path(__file__).resolve().parents[2]
_SITE = """\
import sys
if "broker" in sys.orig_argv:
    sys.path.insert(0, {root!r})
    from tests.clients import plants
    plants.{bug}()
"""


def planted(bug: Callable[[], None], folder: Path) -> dict[str, str]:
    """The environment in which brokers have it."""
    folder.mkdir()
    text = _SITE.format(root=str(ROOT), bug=bug.__name__)
    (folder / "sitecustomize.py").write_text(text)
    return {**os.environ, "PYTHONPATH": str(folder)}


def short_writes() -> None:
    """The number of bytes written is ignored."""
    from emulator.worlds.storage.stored_logs import StoredLog

    class Careless:
        def __init__(self, file: BinaryIO) -> None:
            self._file = file

        def write(self, data: Any) -> int:
            self._file.write(data)
            return len(data)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._file, name)

    opened = StoredLog._open
    StoredLog._open = lambda log, path: Careless(opened(log, path))


def nothing_synced() -> None:
    """A flush moves the recovery point, and that is all."""
    from emulator.kafka.model.offset_log import OffsetLog
    from emulator.worlds.storage.stored_logs import StoredLog

    StoredLog.flush = OffsetLog.flush


def idempotence_off() -> None:
    """A batch that is sent again is appended again."""
    from emulator.kafka.model.producer_state import ProducerStateManager

    ProducerStateManager.duplicate_of = lambda *_: None
    ProducerStateManager.check = lambda *_, **__: None


def isr_fence_off() -> None:
    """A leader writes its ISR over whatever state there is, a newer leader's too."""
    from zk.client.kafka_zk_client import KafkaZkClient

    conditional = KafkaZkClient.conditional_update_path
    KafkaZkClient.conditional_update_path = lambda self, path, data, version, checker: conditional(
        self, path, data, -1, checker
    )


def leader_epoch_fence_off() -> None:
    """A leader serves fetches of an epoch that is over."""
    from emulator.kafka.broker.partition import Partition

    checked = Partition.leader_log_or_error
    Partition.leader_log_or_error = lambda self, epoch: checked(
        self, max(epoch, self.leader_epoch) if epoch >= 0 else epoch
    )


def reads_of_the_uncommitted() -> None:
    """Consumers read up to the end of the leader's log."""
    from emulator.kafka.broker.partition import Partition

    reading = Partition.read_records
    Partition.read_records = lambda *words, committed_only, **more: reading(
        *words, committed_only=False, **more
    )


def acknowledgements_at_once() -> None:
    """acks=all does not wait for followers."""
    from emulator.kafka.broker.partition import Partition
    from emulator.kafka.model.errors import Errors

    def at_once(*_: Any) -> Errors:
        return Errors.NONE

    Partition.check_enough_replicas_reach_offset = at_once
