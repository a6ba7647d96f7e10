"""A violation is facts; its sentence is made of them."""

from __future__ import annotations

from string import Formatter

import pytest

from emulator.invariants.acks_follow_the_isr import LateHighWatermark
from emulator.invariants.base import Violation, invariants
from emulator.invariants.brokers_are_registered import UnknownBrokers
from emulator.invariants.nothing_is_left_to_do import StillThere
from emulator.invariants.notifications_are_read import DeletedUnread
from emulator.invariants.replicas_return_to_isr import MissingReplicas
from tests.unit.invariants.history import ORDERS

FACTS = (1, 2)


def test_each_invariant_has_violations_whose_sentences_name_their_fields() -> None:
    invariants()
    kinds = Violation.__subclasses__()
    modules = {kind.__module__ for kind in kinds}
    assert modules == {kind.__module__ for kind in invariants().values()}
    for kind in kinds:
        named = {field for _, field, _, _ in Formatter().parse(kind.sentence) if field is not None}
        assert named <= {*kind.__struct_fields__}, kind.__name__


@pytest.mark.parametrize(
    ("violation", "sentence"),
    [
        (
            MissingReplicas((2, 3), (1,), facts=FACTS, partition=ORDERS),
            "[2, 3] of its replicas are not in the ISR [1]",
        ),
        (
            UnknownBrokers((), (1, 2), facts=FACTS, broker=1),
            "its metadata has brokers []; brokers [1, 2] have started",
        ),
        (
            LateHighWatermark(7, 1.26, facts=FACTS, partition=ORDERS, broker=1),
            "the ISR shrank, and the high watermark became 7 only 1.3 s later",
        ),
        (
            DeletedUnread("/isr_change_notification/x", facts=FACTS, partition=ORDERS, broker=1),
            "/isr_change_notification/x is deleted, but the controller has not read orders-0 since",
        ),
    ],
)
def test_the_sentence_is_made_of_the_facts(violation: Violation, sentence: str) -> None:
    assert violation.text == sentence


def test_the_name_is_its_invariants() -> None:
    assert StillThere("/x", facts=FACTS).invariant == "nothing is left to do"
