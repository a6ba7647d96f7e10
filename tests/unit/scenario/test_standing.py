"""Which actions on a cluster are still in effect."""

from __future__ import annotations

import pytest

from emulator.scenario.actions.admin import CreateTopic
from emulator.scenario.actions.base import Action
from emulator.scenario.actions.clients import Produce, ProduceStop
from emulator.scenario.actions.life import Kill, Start, Terminate
from emulator.scenario.actions.link import CutLink, DelayLink, HealLink
from emulator.scenario.actions.pause import Pause, Resume
from emulator.scenario.errors import UserError
from emulator.scenario.standing import chosen_to_heal, standing_after

TOPIC = CreateTopic("orders", ((1, 2),))


@pytest.mark.parametrize(
    ("done", "standing"),
    [
        ([], []),
        ([TOPIC], []),
        ([Pause(2), CutLink(1, 3)], [Pause(2), CutLink(1, 3)]),
        ([Pause(2), CutLink(1, 3), Resume(2)], [CutLink(1, 3)]),
        ([Pause(2), Resume(3)], [Pause(2)]),
        ([DelayLink(1, 2, 50), DelayLink(1, 2, 0)], []),
        ([Kill(1), Start(1, if_down=True)], []),
        ([Kill(1), Start(1)], []),
        ([Terminate(1), Start(1, profile="2.7")], []),
        ([Terminate(1), Start(2)], [Terminate(1)]),
        ([CutLink(1, 3, "to_peer"), HealLink(3, 1)], []),
        ([CutLink(1, "zookeeper"), HealLink(1, "zookeeper")], []),
        ([CutLink(1, 3), HealLink(1, 2)], [CutLink(1, 3)]),
    ],
)
def test_what_undoes_something_takes_it_away(done: list[Action], standing: list[Action]) -> None:
    assert standing_after(done) == standing


def test_words_choose_what_is_healed_by_name_and_parameters() -> None:
    standing = [Pause(2), CutLink(1, 2), CutLink(1, "zookeeper")]
    assert chosen_to_heal([], standing) == standing
    assert chosen_to_heal(["2"], standing) == [Pause(2), CutLink(1, 2)]
    assert chosen_to_heal(["cut_link", "zookeeper"], standing) == [CutLink(1, "zookeeper")]
    with pytest.raises(UserError, match=r"^heal 7: no such fault; current faults: pause 2; cut_l"):
        chosen_to_heal(["7"], standing)
    with pytest.raises(UserError, match=r"^heal: no such fault; current faults: none$"):
        chosen_to_heal([], [])


def test_a_producer_ends_with_its_time_but_is_no_fault() -> None:
    produce = Produce("orders", (0,), 20, "all")
    assert produce.ending() == ProduceStop("orders", "all")
    assert standing_after([produce]) == []
