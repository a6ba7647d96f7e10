"""The coverage goals, detected in traces, and the page that lists them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from emulator.kafka.profiles.base import profiles
from emulator.search.async_isr.search import Explorer
from emulator.search.async_isr.steps import Scope, Steps
from emulator.search.schedules.coverage_goals import COVERAGE_GOALS, NOTIFICATION_EVENT, seen_in
from emulator.trace import events
from zk.errors import Code

PAGE = Path(__file__).resolve().parents[3] / "docs" / "explore.md"
PATH = "/brokers/topics/orders/partitions/0/state"


def made(kind: Any, broker: int = 1, *fields: object) -> Any:
    return kind(0, 0, broker, "", -1, *fields)


SENT = made(events.ZkSent, 1, "setData", PATH)
APPLIED = made(events.ZkTransaction, 1, 7, "setData", PATH)
LOST = made(events.ZkReply, 1, "setData", PATH, int(Code.CONNECTION_LOSS), -1, 5)
REFUSED = made(events.ZkReply, 1, "setData", PATH, int(Code.BAD_VERSION), -1, 5)
NOTIFIED = made(events.IsrChangeNotified, 1, "/isr_change_notification/isr_change_1", (), 0, 0)
CLEARED = made(events.IsrChangeCleared, 2, ())
QUEUED = made(events.ControllerEventQueued, 2, NOTIFICATION_EVENT, 0)
PROCESSED = made(events.ControllerEventProcessed, 2, NOTIFICATION_EVENT, 0, 0)
ELECTED = made(events.ControllerElected, 3, 2, 1)


@pytest.mark.parametrize(
    ("trace", "name", "expected"),
    [
        ([SENT, APPLIED, LOST], "reply lost after apply", True),
        ([SENT, LOST], "reply lost after apply", False),
        ([APPLIED, SENT, LOST], "reply lost after apply", False),
        ([SENT, REFUSED], "BadVersion seen", True),
        ([NOTIFIED, NOTIFIED, PROCESSED], "two notifications coalesced", True),
        ([NOTIFIED, PROCESSED, NOTIFIED], "two notifications coalesced", False),
        ([NOTIFIED, ELECTED], "controller moved with notifications outstanding", True),
        (
            [NOTIFIED, CLEARED, ELECTED],
            "controller moved with notifications outstanding",
            False,
        ),
        ([QUEUED, QUEUED], "a watch fired before the list was processed", True),
        ([QUEUED, PROCESSED, QUEUED], "a watch fired before the list was processed", False),
        ([made(events.AlterIsrSent, 1, 2, (), 5, 2)], "AlterIsr retried", True),
        ([made(events.AlterIsrSent, 1, 2, (), 5, 1)], "AlterIsr retried", False),
    ],
)
def test_it_is_seen_where_it_happened(trace: list[Any], name: str, expected: bool) -> None:
    assert (name in seen_in(trace)) is expected


def test_nothing_is_seen_in_nothing() -> None:
    assert not seen_in([])


def test_the_page_lists_them_all() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for name, happened in COVERAGE_GOALS.items():
        assert f"| {name} | {' '.join((happened.__doc__ or '').split())} |" in page


def test_the_page_shows_what_the_model_comes_to() -> None:
    page = PAGE.read_text(encoding="utf-8")
    off = profiles()["2.7"].altered({"maximal-isr": False}, "")
    for number, words in enumerate(Explorer(Steps(Scope(), off)).explore().counterexample, 1):
        assert f"  {number:>2}  {words}\n" in page
    whole = Explorer(Steps(Scope(), profiles()["2.7"])).explore()
    assert f"states     {whole.states:,}, {whole.transitions:,} transitions" in page
