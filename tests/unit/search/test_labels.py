"""The label of what can happen next is declared, whatever the function is called."""

from __future__ import annotations

from functools import partial

from emulator.search.schedules.labels import label_of
from tests.unit.kernel.stage import Stage
from zk.ops import Reply
from zk.wire import labelled


class Connection:
    on_behalf_of = "broker-3"

    @labelled("answered")
    def _renamed(self, reply: Reply) -> None: ...


def test_a_callback_is_called_what_it_declares() -> None:
    with Stage() as stage:
        lane = stage.process.lane("network")
        call = partial(Connection()._renamed, Reply(0))
        assert label_of(lane.callback(call, -1)) == "p network: answered Reply of broker-3"
        assert (
            label_of(lane.callback(labelled("timeout")(lambda: None), -1)) == "p network: timeout"
        )


def test_what_declares_nothing_is_its_thread_alone() -> None:
    with Stage() as stage:
        assert (
            label_of(stage.process.lane("network").callback(lambda: None, -1)) == "p network: call"
        )
