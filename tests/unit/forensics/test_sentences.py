"""Lines of real logs, in the spellings of several versions, and what they mean."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import emulator.forensics.reading  # noqa: F401  (its modules register the sentences)
from emulator.forensics.account import Account
from emulator.forensics.causes import Causes
from emulator.forensics.layouts import Line
from emulator.forensics.log_fields import numbers, parse_partition, parse_state
from emulator.forensics.log_files import LogFile, find_logs, in_order
from emulator.trace import events as e
from emulator.trace.values import Lagging, TopicPartition

ORDERS = TopicPartition("orders", 0)
CHANGES, PARTITION = "state.change.logger", "kafka.cluster.Partition"
CONTROLLER, SERVER = "kafka.controller.KafkaController", "kafka.server.KafkaServer"
_KEY = "LeaderAndIsrPartitionState(topicName='orders', partitionIndex=0, "


def said(*lines: tuple[str, str]) -> list[Any]:
    """The events of broker 1 for these lines (logger, text), all at the same time."""
    account = Account(1, Causes())
    for logger, text in lines:
        account.read(Line(1_000, "INFO", text, logger))
    account.end_of_metadata()
    assert account.understood == len(lines), account.not_understood
    return account.events


# -- LeaderAndIsr, as 2.6, 1.0 and 0.8 print it ----------------------------------------------------

RECEIVED = {
    "2.6": "[Broker id=1] Received LeaderAndIsr request " + _KEY + "controllerEpoch=1, leader=2,"
    " leaderEpoch=3, isr=[2, 1], zkVersion=4, replicas=[1, 2], addingReplicas=[],"
    " removingReplicas=[], isNew=false) correlation id 9 from controller 3 epoch 1",
    "3.3": "[Broker id=1] Received LeaderAndIsr request " + _KEY + "controllerEpoch=1, leader=2,"
    " leaderEpoch=3, isr=[2, 1], partitionEpoch=4, replicas=[1, 2], addingReplicas=[],"
    " removingReplicas=[], isNew=false, leaderRecoveryState=0) correlation id 9 from controller 3"
    " epoch 1",
    "1.0": "[Broker id=1] Received LeaderAndIsr request PartitionState(controllerEpoch=1, leader=2,"
    " leaderEpoch=3, isr=2,1, zkVersion=4, replicas=1,2, isNew=false) correlation id 9 from"
    " controller 3 epoch 1 for partition orders-0",
    "0.8": "Broker 1 received LeaderAndIsr request (LeaderAndIsrInfo:(Leader:2,ISR:2,1,"
    "LeaderEpoch:3,ControllerEpoch:1),ReplicationFactor:2),AllReplicas:1,2) correlation id 9 from"
    " controller 3 epoch 1 for partition [orders,0]",
}


@pytest.mark.parametrize("version", RECEIVED)
def test_a_leader_and_isr_request_is_read_in_every_spelling(version: str) -> None:
    (event,) = said((CHANGES, RECEIVED[version]))
    assert isinstance(event, e.LeaderAndIsr)
    assert (event.sender, event.sender_epoch) == (3, 1)
    told = event.state
    assert (told.partition, told.leader, told.leader_epoch) == (ORDERS, 2, 3)
    assert (told.isr, told.replicas, told.controller_epoch) == ((2, 1), (1, 2), 1)
    assert told.zk_version == (-1 if version == "0.8" else 4)


@pytest.mark.parametrize(
    ("why", "error"),
    [
        (
            "since its associated leader epoch 3 matches the current leader epoch",
            "STALE_LEADER_EPOCH",
        ),
        ("as itself is not in assigned replica list 2,3", "UNKNOWN_TOPIC_OR_PARTITION"),
    ],
)
def test_what_is_ignored_is_what_was_received_last(why: str, error: str) -> None:
    ignoring = (
        "[Broker id=1] Ignoring LeaderAndIsr request from controller 3 with correlation id 9 epoch"
        f" 1 for partition orders-0 {why}"
    )
    taken, ignored = said((CHANGES, RECEIVED["2.6"]), (CHANGES, ignoring))
    assert (ignored.state, ignored.error) == (taken.state, error)


def test_an_update_metadata_request_is_one_event_however_many_lines_it_has() -> None:
    by = "UpdateMetadata request sent by controller 3 epoch 1 with correlation id"
    entry = (
        "UpdateMetadataPartitionState(topicName='orders', partitionIndex={0}, controllerEpoch=1,"
        " leader=1, leaderEpoch=0, isr=[1, 2], zkVersion=0, replicas=[1, 2], offlineReplicas=[2])"
    )
    cached = "[Broker id=1] Cached leader info {1} for partition orders-{0} in response to {2} {3}"
    gone = f"[Broker id=1] Deleted partition old-0 from metadata cache in response to {by} 8"
    lines = [cached.format(n, entry.format(n), by, correlation) for n, correlation in
             ((0, 7), (1, 7), (0, 8))]  # fmt: skip
    first, second = said(*((CHANGES, line) for line in (*lines, gone)))
    assert [it.partition.partition for it in first.states] == [0, 1]
    assert first.states[0].offline_replicas == (2,)
    assert (len(second.states), second.removed) == (1, (TopicPartition("old", 0),))


@pytest.mark.parametrize(
    ("line", "epoch"),
    [
        (
            (
                "[Broker id=1] Received StopReplica request StopReplicaPartitionState("
                "partitionIndex=0, leaderEpoch=3, deletePartition=true) correlation id 10 from"
                " controller 3 epoch 1 for partition orders-0"
            ),
            3,
        ),
        ("[Broker id=1] Handling stop replica (delete=true) for partition orders-0", -1),
        ("Broker 1 handling stop replica (delete=true) for partition [orders,0]", -1),
    ],
)
def test_stop_replica(line: str, epoch: int) -> None:
    (event,) = said((CHANGES, line))
    assert (event.partition, event.leader_epoch, event.delete) == (ORDERS, epoch, True)


# -- the leader's ISR ------------------------------------------------------------------------------

SHRINKS = [
    (
        "[Partition orders-0 broker=1] Shrinking ISR from 1,2,3 to 1. Leader: (highWatermark: 209,"
        " endOffset: 250). Out of sync replicas: (brokerId: 2, endOffset: 209) (brokerId: 3,"
        " endOffset: 209)."
    ),
    "[Partition orders-0 broker=1] Shrinking ISR from 1,2,3 to 1",
    "Partition [orders,0] on broker 1: Shrinking ISR for partition [orders,0] from 1,2,3 to 1",
]


def high_watermarks(*lines: str) -> list[int]:
    return [event.hw for event in said(*((PARTITION, line) for line in lines))]


def rises(of: int, to: int) -> str:
    return (
        f"[Partition orders-0 broker=1] High watermark updated from (offset={of} segment=[0:9]) to"
        f" (offset={to} segment=[0:99])"
    )


def test_high_watermarks() -> None:
    assert high_watermarks(rises(3, 5), rises(5, 8)) == [5, 8]
    assert high_watermarks(
        "[Partition orders-0 broker=1] High watermark updated to (offset=5 segment=[0:9])",
        "Partition [orders,0] on broker 1: High watermark for partition [orders,0] updated to 8"
        " [0 : 99]",
    ) == [5, 8]


def test_threads_write_in_another_order_than_they_raised_the_high_watermark() -> None:
    """Seen after a SIGCONT: two lines of one millisecond, the later rise first."""
    assert high_watermarks(rises(5, 8), rises(3, 5), rises(8, 9)) == [8, 9]


def test_a_high_watermark_that_really_falls_is_told() -> None:
    assert high_watermarks(rises(5, 8), rises(3, 6)) == [8, 6]


def test_a_new_leadership_begins_anew() -> None:
    starts = (
        "[Broker id=1] Leader orders-0 starts at leader epoch 2 from offset 9 with high watermark 3"
        " Previous leader epoch was 1."
    )
    events = said((PARTITION, rises(5, 8)), (CHANGES, starts), (PARTITION, rises(3, 5)))
    assert [event.hw for event in events] == [8, 3, 5]


@pytest.mark.parametrize("line", SHRINKS)
def test_a_shrink(line: str) -> None:
    (event,) = said((PARTITION, line))
    assert (event.partition, event.change) == (ORDERS, "shrink")
    assert (event.from_isr, event.to_isr) == ((1, 2, 3), (1,))
    if "endOffset" in line:
        assert (event.hw, event.leo) == (209, 250)
        assert event.out_of_sync == (Lagging(2, 209, -1), Lagging(3, 209, -1))


@pytest.mark.parametrize(
    ("line", "version"),
    [
        ("[Partition orders-0 broker=1] ISR updated to [1,2] and zkVersion updated to [7]", 7),
        ("Partition [orders,0] on broker 1: ISR updated to [1,2] and zkVersion updated to [7]", 7),
        ("[Partition orders-0 broker=1] ISR updated from AlterIsr to 1,2 and version updated to [7]"
         , 7),
    ],
)  # fmt: skip
def test_an_isr_that_was_written(line: str, version: int) -> None:
    (event,) = said((PARTITION, line))
    assert (event.partition, event.isr, event.zk_version) == (ORDERS, (1, 2), version)


@pytest.mark.parametrize(
    "line",
    [
        (
            "[Partition orders-0 broker=1] Cached zkVersion 7 not equal to that in zookeeper, skip"
            " updating ISR"
        ),
        (
            "Partition [orders,0] on broker 1: Cached zkVersion [7] not equal to that in zookeeper,"
            " skip updating ISR"
        ),
    ],
)
def test_an_isr_that_was_not(line: str) -> None:
    (event,) = said((PARTITION, line))
    assert (event.partition, event.cached_zk_version) == (ORDERS, 7)


def test_a_proposal_of_2_7_says_what_it_changes() -> None:
    known = "[Partition orders-0 broker=1] ISR updated from AlterIsr to 2,3 and version updated to"
    sent = (
        "[Partition orders-0 broker=1] Sent `AlterIsr` request to change state to LeaderAndIsr("
        "leader=1, leaderEpoch=1, isr=List(2, 3, 1), zkVersion=1) after transition to"
        " PendingExpandIsr(isr=Set(2, 3), newInSyncReplicaId=1)"
    )
    _, started, proposed = said((PARTITION, f"{known} [1]"), (PARTITION, sent))
    assert (started.from_isr, started.to_isr) == ((2, 3), (2, 3, 1))
    assert (proposed.isr, proposed.zk_version) == ((2, 3, 1), 1)
    assert proposed.pending == "PendingExpandIsr"


PROPOSALS = {
    "2.8": "Enqueued ISR change to state LeaderAndIsr(leader=1, leaderEpoch=1, isr=List(2, 3, 1),"
    " zkVersion=1) after transition to PendingExpandIsr(isr=Set(2, 3), newInSyncReplicaId=1)",
    "3.3": "Submitting ISR state change PendingExpandIsr(newInSyncReplicaId=1, sentLeaderAndIsr="
    "LeaderAndIsr(leader=1, leaderEpoch=1, isr=List(2, 3, 1), leaderRecoveryState=RECOVERED,"
    " partitionEpoch=1), leaderRecoveryState=RECOVERED, lastCommittedState="
    "CommittedPartitionState(isr=Set(2, 3), leaderRecoveryState=RECOVERED))",
    "3.9": "Submitting ISR state change PendingExpandIsr(newInSyncReplicaId=1, sentLeaderAndIsr="
    "LeaderAndIsr(leader=1, leaderEpoch=1, isrWithBrokerEpoch=List(BrokerState(brokerId=2,"
    " brokerEpoch=-1), BrokerState(brokerId=3, brokerEpoch=-1), BrokerState(brokerId=1,"
    " brokerEpoch=-1)), leaderRecoveryState=RECOVERED, partitionEpoch=1), leaderRecoveryState="
    "RECOVERED, lastCommittedState=CommittedPartitionState(isr=Set(2, 3), leaderRecoveryState="
    "RECOVERED))",
}


@pytest.mark.parametrize("version", PROPOSALS)
def test_a_proposal_is_read_as_real_brokers_word_it(version: str) -> None:
    started, proposed = said((PARTITION, f"[Partition orders-0 broker=1] {PROPOSALS[version]}"))
    assert (started.change, started.to_isr) == ("expand", (2, 3, 1))
    assert (proposed.isr, proposed.leader_epoch, proposed.zk_version) == ((2, 3, 1), 1, 1)
    assert proposed.pending == "PendingExpandIsr"


@pytest.mark.parametrize(
    "line",
    [
        (
            "[Broker id=1] Leader orders-0 with topic id Some(pQx-Ae) starts at leader epoch 2"
            " from offset 60 with partition epoch 3, high watermark 59, ISR [1,2,3], adding"
            " replicas [] and removing replicas []. Previous leader epoch was -1."
        ),
        (
            "[Broker id=1] Leader orders-0 starts at leader epoch 2 from offset 60 with high"
            " watermark 59. Previous leader epoch was 0."
        ),
    ],
)
def test_a_leader_begins(line: str) -> None:
    (event,) = said((CHANGES, line))
    assert isinstance(event, e.BecomesLeader)
    assert (event.leader_epoch, event.leo, event.hw) == (2, 60, 59)


# -- brokers and controllers -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        (
            "[Controller id=3] 3 successfully elected as the controller. Epoch incremented to 4 and"
            " epoch zk version is now 5"
        ),
        "[Controller 3]: Controller 3 incremented epoch to 4",
        "[Controller id=3] Incremented epoch to 4",
        "[Controller id=3] Epoch incremented to 4",
    ],
)
def test_an_election(line: str) -> None:
    (event,) = said((CONTROLLER, line))
    assert event.controller_epoch == 4


def test_brokers_that_come_and_go() -> None:
    line = (
        "[Controller id=3] Newly added brokers: 1, deleted brokers: , bounced brokers: 2, all live"
        " brokers: 1,2,3"
    )
    (event,) = said((CONTROLLER, line))
    assert (event.added, event.deleted, event.bounced, event.live) == ((1,), (), (2,), (1, 2, 3))


@pytest.mark.parametrize(
    ("line", "kind", "state"),
    [
        ("starting", e.BrokerStarting, "starting"),
        ("[KafkaServer id=1] started", e.BrokerStarted, "up"),
        ("[Kafka Server 1], started", e.BrokerStarted, "up"),
        ("[KafkaServer id=1] shutting down", None, "stopping"),
        ("[Kafka Server 1], shutting down", None, "stopping"),
        ("[KafkaServer id=1] shut down completed", e.BrokerExited, "dead"),
    ],
)
def test_a_brokers_life(line: str, kind: type | None, state: str) -> None:
    *events, process = said((SERVER, line))
    assert [type(event) for event in events] == ([kind] if kind else [])
    assert isinstance(process, e.ProcessStateChanged)
    assert process.state == state


def test_each_process_of_an_upgraded_broker_has_its_own_version() -> None:
    logger = "org.apache.kafka.common.utils.AppInfoParser"
    events = said((SERVER, "starting"), (logger, "Kafka version: 2.6.3"),
                  (SERVER, "starting"), (logger, "Kafka version: 2.7.2"),
                  (SERVER, "starting"))  # fmt: skip
    starts = [it.profile for it in events if isinstance(it, e.BrokerStarting)]
    assert starts == ["2.6", "2.7", ""]


def test_a_process_registers_once_later_ones_come_from_its_session() -> None:
    logger = "kafka.zk.KafkaZkClient"
    line = (
        "Registered broker 1 at path /brokers/ids/1 with addresses: P://h:1, czxid (broker epoch): "
    )
    events = said((logger, line + "24"), (logger, line + "93"), (SERVER, "starting"),
                  (logger, line + "99"))  # fmt: skip
    registered = [it.broker_epoch for it in events if isinstance(it, e.BrokerRegistered)]
    assert registered == [24, 99]


def test_a_truncation_knows_its_end_from_becoming_a_follower() -> None:
    follower = (
        "[Broker id=1] Follower orders-0 starts at leader epoch 1 from offset 387 with high"
        " watermark 209. Previous leader epoch was 0."
    )
    cut = "[Log partition=orders-0, dir=/data] Truncating to offset 209"
    events = said((CHANGES, follower), ("kafka.log.Log", cut), ("kafka.log.Log", cut))
    cuts = [it for it in events if isinstance(it, e.LogTruncated)]
    assert [(it.from_leo, it.to_offset) for it in cuts] == [(387, 209), (-1, 209)]


def test_a_line_of_nobody_is_counted_by_its_pattern_and_by_its_logger() -> None:
    account = Account(1, Causes())
    for n in (1, 22):
        account.read(Line(0, "INFO", f"[Broker id=1] Dreams of {n} sheep", CHANGES))
        account.read(Line(0, "INFO", "Loaded", "kafka.log.LogManager"))
    pattern = "state.change.logger: [Broker id=N] Dreams of N sheep"
    assert account.not_understood == {pattern: 2}
    assert account.other_loggers == {"kafka.log.LogManager": 2}
    assert (account.understood, account.events) == (0, [])


# -- values and files ------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["my.topic-x-10", "[my.topic-x,10]"])
def test_partitions_are_named_in_two_ways(text: str) -> None:
    assert parse_partition(text) == TopicPartition("my.topic-x", 10)


@pytest.mark.parametrize("text", ["List(1, 2)", "[1, 2]", "1,2", "Set(1,2)"])
def test_lists_are_printed_in_many(text: str) -> None:
    assert numbers(text) == (1, 2)


def test_what_is_no_state_is_not_taken_for_one() -> None:
    with pytest.raises(ValueError, match="no partition state"):
        parse_state("nothing of the kind", ORDERS)


def log(folder: Path, name: str, text: str) -> LogFile:
    (folder / name).write_text(text)
    return next(file for file in find_logs([folder]) if file.name == name)


FIRST = "[2026-11-22 03:00:00,001] INFO [Broker id=7] Handling LeaderAndIsr (state.change.logger)\n"


def test_a_stack_trace_belongs_to_the_line_before_it(tmp_path: Path) -> None:
    text = FIRST + "java.lang.Exception: no\n\tat kafka.K(K.scala:1)\n" + FIRST
    file = log(tmp_path, "state-change.log", "tail of an older file\n" + text)
    lines = list(file.lines())
    assert [line.text for line in lines] == ["[Broker id=7] Handling LeaderAndIsr"] * 2
    assert (file.broker, lines[0].at_ms) == (7, 1_795_316_400_001)
    assert file.unread == {"before the first entry of a file": 1}


def test_a_message_of_several_lines_is_one(tmp_path: Path) -> None:
    text = "[2026-11-22 03:00:00,001] INFO Config: \n\tbroker.id = 7\n (kafka.server.KafkaConfig)\n"
    (line,) = log(tmp_path, "server.log", text).lines()
    assert (line.text, line.logger) == ("Config: \n\tbroker.id = 7\n", "kafka.server.KafkaConfig")


def test_rotated_pieces_are_read_oldest_first_whatever_their_names(tmp_path: Path) -> None:
    for name, hour in (("server.log", "05"), ("server.log.2", "03"), ("server.log.1", "04")):
        (tmp_path / name).write_text(FIRST.replace(" 03:", f" {hour}:"))
    assert [file.name for file in in_order(find_logs([tmp_path]))] == [
        "server.log.2",
        "server.log.1",
        "server.log",
    ]


def test_what_two_controllers_send_alike_is_told_apart() -> None:
    """A new controller sends each broker the states it finds, as the last one had; their logs are
    not read in order of time."""
    causes = Causes()
    state = RECEIVED["2.6"].partition("request ")[2].partition(" correlation")[0]
    sending = (
        f"[Controller id={{0}} epoch={{0}}] Sending become-follower LeaderAndIsr request {state} to"
        " broker 1 for partition orders-0"
    )
    received = (
        f"[Broker id=1] Received LeaderAndIsr request {state} correlation id 9 from controller"
    )
    for broker, at_ms, text in (
        (2, 2_000, sending.format(2)),
        (3, 1_000, sending.format(3)),
        (1, 1_005, f"{received} 3 epoch 3"),
        (1, 2_005, f"{received} 2 epoch 2"),
    ):
        account = Account(broker, causes)
        account.read(Line(at_ms, "TRACE", text, CHANGES))
        assert account.understood == 1
    assert {(one.cause, one.seen_ms - one.sent_ms) for one in causes.pairs()} == {
        ("broker-2", 5),
        ("broker-3", 5),
    }
