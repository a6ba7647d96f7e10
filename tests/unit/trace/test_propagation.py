"""From a leader's decision to who has to know it: story by story, for both propagation paths."""

from __future__ import annotations

from emulator.trace import events as e
from emulator.trace.handlers import Dispatch
from emulator.trace.reader import with_process_states
from emulator.trace.state import TraceState
from emulator.trace.state.answers import Answers
from emulator.trace.state.propagation import Propagation
from emulator.trace.state.zookeeper_load import Load, ZooKeeperLoad
from emulator.trace.values import Parameters, TopicPartition
from tests.unit.scenario.story import ORDERS, SECOND, Story
from zk.sizes import request_bytes

STATE = "/brokers/topics/orders/partitions/0/state"
NODE = "/isr_change_notification/isr_change_"


def observed(story: Story) -> TraceState:
    state = TraceState()
    for event in with_process_states(story.events):
        state(event)
    return state


def propagation(story: Story) -> Propagation:
    return observed(story).propagation


def stuck(story: Story, at_us: int) -> list[TopicPartition]:
    return observed(story).isr_updates.stuck(at_us)


def controller_knows(story: Story, version: int, *isr: int, at: int = 3) -> Story:
    facts = ORDERS, 1, 0, isr, version, "notification"
    return story.tell(e.ControllerCacheUpdated, at, *facts)


def expands(story: Story, version: int) -> Story:
    facts = ORDERS, "expand", (1, 3), (1, 3, 2), 0, 9, 0, version
    return story.tell(e.IsrUpdateStarted, 1, *facts)


def ms(times: list[int]) -> list[float]:
    return [us / 1000 for us in times]


# -- propagation -----------------------------------------------------------------------------------


def test_the_zookeeper_path_is_true_at_once_and_known_late() -> None:
    story = Story().created().at(7).shrinks(2, after_ms=2100).at(7.004).written(1, 1, 3)
    controller_knows(story.at(14), 1, 1, 3).at(14.005).shown(1, 1, 3)
    found = propagation(story)
    assert ms(found.leader_us) == [4]
    assert ms(found.controller_us) == [7000]
    assert ms(found.metadata_us) == [7005, 7005, 7005]
    assert (found.unknown_changes, stuck(story, story.events[-1].t)) == (0, [])


def test_on_the_rpc_path_everybody_knows_before_the_leader_does() -> None:
    story = Story().created().at(7).shrinks(2, after_ms=2100)
    controller_knows(story.at(7.050), 1, 1, 3).at(7.053).shown(1, 1, 3)
    story.at(7.055).written(1, 1, 3)
    found = propagation(story)
    assert ms(found.leader_us) == [55]
    assert ms(found.controller_us) == [50]
    assert ms(found.metadata_us) == [53, 53, 53]


def test_who_learns_a_later_version_is_not_ignorant_of_the_earlier_one() -> None:
    story = Story().created().at(7).shrinks(2, after_ms=2100).written(1, 1, 3)
    expands(story.at(9), 1).written(2, 1, 3, 2, change="expand")
    controller_knows(story.at(15), 2, 1, 3, 2).shown(2, 1, 3, 2)
    found = propagation(story)
    assert ms(found.controller_us) == [8000, 6000]
    assert sorted(ms(found.metadata_us)) == [6000] * 3 + [8000] * 3


def test_a_broker_that_stands_still_meanwhile_is_not_counted() -> None:
    story = Story().created().at(5).tell(e.ActionApplied, 2, "pause", Parameters())
    story.at(7).shrinks(2, after_ms=2100).written(1, 1, 3)
    story.at(14).shown(1, 1, 3, at_brokers=(1, 3)).tell(e.ActionApplied, 2, "resume", Parameters())
    assert ms(propagation(story.shown(1, 1, 3, at_brokers=(2,))).metadata_us) == [7000, 7000]


def test_a_broker_that_stops_or_starts_anew_meanwhile_is_not_counted() -> None:
    story = Story().created().at(7).shrinks(2, after_ms=2100).written(1, 1, 3)
    story.at(8).tell(e.ActionApplied, 2, "pause", Parameters()).tell(e.BrokerStarting, 3, "2.6")
    assert ms(propagation(story.at(9).shown(1, 1, 3)).metadata_us) == [2000]


def test_a_refused_try_is_no_change_and_the_partition_is_stuck_until_a_new_leadership() -> None:
    story = Story().created().at(7).shrinks(2, after_ms=2100)
    story.tell(e.IsrUpdateRejected, 1, ORDERS, "shrink", 0)
    state = observed(controller_knows(story, 1, 3, 2))
    found = state.propagation
    assert (state.isr_updates.rejected, found.leader_us, found.controller_us) == (1, [], [])
    assert state.isr_updates.stuck(7 * SECOND) == [ORDERS]
    story.tell(e.BecomesFollower, 1, ORDERS, 3, 1, 0, 0)
    assert observed(story).isr_updates.stuck(7 * SECOND) == []


def test_a_decision_without_an_outcome_is_stuck_after_a_while() -> None:
    found = observed(Story().created().at(7).shrinks(2, after_ms=2100)).isr_updates
    assert found.stuck(int(7.9 * SECOND)) == []
    assert found.stuck(int(8.1 * SECOND)) == [ORDERS]


def fails(story: Story, outcome: str) -> Story:
    facts = ORDERS, "shrink", "INVALID_UPDATE_VERSION", outcome, 0
    return story.tell(e.AlterIsrFailed, 1, *facts)


def test_a_proposal_that_stays_pending_is_stuck_and_one_rolled_back_is_not() -> None:
    story = Story().created().at(7).shrinks(2, after_ms=2100).at(7.06)
    found = observed(fails(story, "stays pending")).isr_updates
    assert (found.rejected, found.stuck(9 * SECOND)) == (1, [ORDERS])
    found = observed(fails(story, "rolled back")).isr_updates
    assert (found.rejected, found.stuck(9 * SECOND)) == (2, [])


def test_what_nobody_has_learnt_at_the_end_is_said() -> None:
    story = Story().created().at(7).shrinks(2, after_ms=2100).written(1, 1, 3)
    assert propagation(story).unknown_changes == 1


def test_a_topic_that_is_deleted_is_forgotten() -> None:
    story = Story().created().at(7).shrinks(2, after_ms=2100).written(1, 1, 3)
    story.tell(e.MetadataCacheUpdated, 2, 3, 1, (1, 2, 3), (), (ORDERS,))
    assert propagation(story.at(9).created()).unknown_changes == 0


# -- what it costs ZooKeeper -----------------------------------------------------------------------


def load(story: Story) -> ZooKeeperLoad:
    found = ZooKeeperLoad()
    hear = Dispatch((found,))
    for event in story.events:
        hear(event)
    return found


def sends(story: Story, broker: int, op: str, path: str, detail: str = "") -> Story:
    thread = "controller-event-thread" if broker == 3 else "kafka-scheduler/isr-expiration"
    return story.tell(e.ZkSent, broker, op, path, 0, detail, thread=thread)


def processes(story: Story, event: str) -> Story:
    return story.tell(e.ControllerEventProcessed, 3, event, 0, 0)


def test_leaders_pay_for_their_writes_and_notifications() -> None:
    story = sends(sends(Story(), 1, "setData", STATE, "{}"), 1, "getData", STATE)
    sends(sends(story, 1, "create", NODE, "[]"), 1, "getData", "/config/topics/orders")
    sends(story, 2, "create", "/isr_change_notification")  # at boot
    size = request_bytes("setData", STATE, b"{}") + request_bytes("getData", STATE)
    size += request_bytes("create", NODE, b"[]")
    assert load(story).leader == Load(writes=2, reads=1, watches=0, bytes=size)


def test_the_controller_pays_for_the_events_that_isr_changes_queue_and_for_no_others() -> None:
    story = Story().tell(e.ZkWatchFired, 3, "NodeChildrenChanged", "/isr_change_notification")
    sends(story, 3, "getChildren2", "/isr_change_notification")
    processes(sends(story, 3, "multi/delete", NODE + "0"), "IsrChangeNotification")
    processes(sends(story, 3, "getChildren2", "/brokers/ids"), "BrokerChange")
    processes(sends(story, 3, "multi/setData", STATE, "{}"), "AlterIsrReceived")
    found = load(story).controller
    assert (found.writes, found.reads, found.watches) == (2, 1, 1)


def test_what_a_dead_controller_had_begun_is_nobodys() -> None:
    story = sends(Story(), 3, "multi/setData", STATE).tell(e.BrokerStarting, 3, "2.7")
    assert load(processes(story, "AlterIsrReceived")).controller == Load()


# -- producers -------------------------------------------------------------------------------------


def test_answers_are_measured_from_the_hand_over_and_gaps_between_them() -> None:
    found = Answers()
    for t, handed_over, result in ((2, 1, "ok"), (9, 3, "MSG_TIMED_OUT"), (10, 4, "ok")):
        facts = "p", ORDERS, "all", result, 0, 1, handed_over * SECOND
        found.on_records_produced(e.RecordsProduced(0, t * SECOND, 0, "", -1, *facts))
    assert list(found.took_us) == [1 * SECOND, 6 * SECOND]
    assert found.gap_us_max == 8 * SECOND
