"""Actions in words, and the length of faults."""

from __future__ import annotations

from emulator.trace import events as e
from emulator.trace.state.actions import describe, faults, lane_of
from tests.unit.view.traces import Script


def test_a_fault_lasts_until_what_undoes_it() -> None:
    script = Script()
    script.at(10).action("pause", broker=2)
    script.at(20).action("cut_link", broker=1, peer=3)
    script.at(30).action("resume", broker=2)
    script.at(40).action("slow_follower", broker=3, bytes_per_s=500)
    script.at(50).action("slow_follower", broker=3, bytes_per_s=0)
    script.at(60).action("heal_link", broker=1, peer=3)
    script.at(70).action("kill", broker=1)
    script.at(80).add(e.BrokerStarting, 1, "2.6")
    script.at(90).action("pause", server="zookeeper")
    found = [
        (f.lane, f.do, f.from_us // 1000, f.to_us // 1000) for f in faults(script.events, 99_000)
    ]
    assert found == [
        ("2", "pause", 10, 30),
        ("1", "cut_link", 20, 60),
        ("3", "slow_follower", 40, 50),
        ("1", "kill", 70, 80),
        ("zookeeper", "pause", 90, 99),
    ]


def test_actions_in_words() -> None:
    script = Script()
    script.action("create_topic", topic="orders", assignment=[[1, 2], [2, 3]])
    script.action("produce", topic="orders", partitions=[0], rate=20.0, acks="all", client={})
    script.action("cut_link", broker=1, peer="zookeeper")
    script.action("pause", broker=2)
    said = [(lane_of(x), describe(x)) for x in script.events if isinstance(x, e.ActionApplied)]
    assert said == [
        ("", "create topic orders on 1,2 2,3"),
        ("", "produce orders-0, rate 20, acks all"),
        ("1", "link cut, peer zookeeper"),
        ("2", "paused"),
    ]
