"""The gate: who is let in when, and who is not."""

from __future__ import annotations

import pytest

from zk.real.pause_gate import Gate


class Waiting:
    """A client's thread that only waits."""

    abandoned = False

    def wake(self) -> None: ...


def test_an_open_gate_lets_the_owner_in_once() -> None:
    gate = Gate()
    assert gate.enter_if_open()
    assert not gate.enter_if_open()
    gate.leave()
    assert gate.enter_if_open()


def test_the_owner_does_not_wait_for_the_clients_thread() -> None:
    gate = Gate()
    gate.enter(Waiting())
    assert not gate.enter_if_open()


@pytest.mark.parametrize(("close", "open_again"), [("pause", "resume"), ("cut", "heal")])
def test_nobody_passes_a_closed_gate(close: str, open_again: str) -> None:
    gate = Gate()
    getattr(gate, close)()
    assert not gate.enter_if_open()
    getattr(gate, open_again)()
    assert gate.enter_if_open()
