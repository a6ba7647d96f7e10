"""No broker obeys a greater controller epoch than that of the owner of /controller."""

from __future__ import annotations

from emulator.invariants.base import Invariant, Violation
from emulator.trace import events as e

_PATH = "/controller"


class GreaterEpochObeyed(Violation, frozen=True):
    obeyed_epoch: int
    obeyed: int
    owner: int
    owner_epoch: int

    sentence = (
        "broker {broker} obeys controller epoch {obeyed_epoch} of {obeyed}; /controller names"
        " {owner}, with epoch {owner_epoch}"
    )


class TheControllerIsNotFenced(Invariant):
    """The owner of /controller has the greatest controller epoch that any broker obeys; with a
    lower one, brokers would refuse its requests (S11)."""

    def begin(self) -> None:
        self._elected: dict[int, tuple[int, int]] = {}
        self._owner, self._since = 0, -1

    def on_zk_transaction(self, event: e.ZkTransaction) -> None:
        if _PATH in event.removed:
            self._owner = 0
        for op in event.ops or (event,):
            if op.path == _PATH and op.op == "create" and not op.code:
                self._owner, self._since = event.broker, event.seq
            elif op.path == _PATH and op.op == "delete" and not op.code:
                self._owner = 0

    def on_controller_elected(self, event: e.ControllerElected) -> None:
        self._elected[event.broker] = event.controller_epoch, event.seq

    def on_metadata_cache_updated(self, event: e.MetadataCacheUpdated) -> None:
        epoch, seq = self._elected.get(self._owner, (0, -1))
        if seq > self._since and event.sender_epoch > epoch:
            self.violated(
                GreaterEpochObeyed(
                    event.sender_epoch,
                    event.sender,
                    self._owner,
                    epoch,
                    facts=(seq, event.seq),
                    broker=event.broker,
                )
            )
