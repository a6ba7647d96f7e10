"""Tables of two hand-written runs, small enough to count each figure.

Run `one`: broker 3 creates orders-0 with all three replicas at 0 s. Broker 1, the leader, writes
the ISR [1] at 4 s (version 1) and is refused with BadVersion at 6 s. At 7 s nobody leads (version
2), at 9 s broker 2 does, who was not in the ISR (version 3). Run `two`: a partition is made, and
nothing else. `min.insync.replicas` is 2; each run is over at 10 s, and so is its trace.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from emulator.analysis import tables
from emulator.analysis.aggregations import aggregations
from emulator.analysis.dataset import RunKey, open_dataset
from emulator.analysis.derived import caching
from emulator.analysis.writer import write_run
from emulator.runs import dataset_rows as rows
from emulator.scenario.load import loads
from emulator.trace import events as e
from emulator.trace.rows import Figure, RunEnded, ZkLogged
from emulator.trace.values import LoggedOp, Offset, PartitionState
from tests.unit.view.traces import P0, STATE, Script

pytestmark = pytest.mark.spark

SCENARIO = loads("cluster: {config: {min.insync.replicas: 2}}\nrun: 9s", "by-hand")
PATH = STATE.format(*P0)
END_US = 10_000_000
SCHEDULER = "kafka-scheduler-3"


class Story(Script):
    """The part of a run that the tables below need."""

    def created(self) -> Story:
        self.at(0).create((1, 2, 3))
        state = PartitionState(P0, 1, 1, 0, (1, 2, 3), 0, (1, 2, 3))
        self.add(e.LeaderAndIsr, 1, 3, 1, state)
        return self

    def led(self, leader: int, isr: tuple[int, ...], version: int) -> None:
        """The controller's write of a state znode."""
        data = {"leader": leader, "leader_epoch": version, "isr": isr, "controller_epoch": 1}
        self._transaction(3, "setData", PATH, json.dumps(data), version)

    def over(self) -> None:
        """The last event of the trace."""
        self.at(10_000).add(e.ThreadFailed, 3, "a task", "an error")

    def asked(self, broker: int, op: str, path: str, *more: Any, thread: str) -> None:
        self.add(e.ZkSent, broker, op, path, *more, thread=thread)

    def told(self, acks: str, result: str, count: int, ms: int) -> None:
        """A batch that was passed to the client `ms` ago."""
        self.add(e.RecordsProduced, 0, "p", P0, acks, result, 0, count, self.now - 1000 * ms)


def one() -> list[Any]:
    story = Story().created()
    story.add(e.ControllerElected, 3, 2, 2)
    for broker, op in ((1, "connect"), (1, "connect"), (2, "connect"), (2, "getData")):
        story.add(e.ZkRequest, broker, op)
    story.add(e.FetcherStarted, 2, 1, 0)
    for follower, named in ((2, 2), (2, 0), (2, 1), (3, 1)):
        story.add(e.FetchSent, follower, 1, (Offset(P0, 4),) * named, 1)
    for to in (1, 2):
        story.add(e.ControlRequestSent, 3, to, "UpdateMetadata", (P0,), 1)
    story.add(e.BecomesLeader, 1, P0, 0, 4, 0)
    story.add(e.HwAdvanced, 1, P0, "leader", 4, 4)
    story.add(e.HwAdvanced, 2, P0, "follower", 3, 4)
    story.asked(3, "getData", "/controller", thread="controller-event-thread")
    story.at(3000).add(e.RecordsAppended, 1, P0, "leader", 4, 9, 0, 100)
    for acks, result, count, ms in (
        ("all", "ok", 3, 20), ("all", "ok", 1, 10), ("all", "_MSG_TIMED_OUT", 4, 900),
        ("1", "ok", 5, 2),
    ):  # fmt: skip
        story.told(acks, result, count, ms)
    story.at(4000)
    story.asked(1, "setData", PATH, 0, "é", thread=SCHEDULER)
    story.write(1, 1, (1,))
    story.add(e.ZkReply, 1, "setData", PATH, 0, 1, 900)
    story.decides((1, 2, 3), (1,), 0)
    story.add(e.IsrUpdated, 1, P0, "shrink", (1,), 1, 0)
    story.at(6000).decides((1,), (1, 2), 0)
    story.asked(1, "setData", PATH, 0, "ab", thread="kafka-scheduler-9")
    story.add(e.ZkReply, 1, "setData", PATH, -103, -1, 900)
    story.add(e.IsrUpdateRejected, 1, P0, "expand", 0)
    story.at(7000).led(-1, (1,), 2)  # type: ignore[attr-defined]
    story.at(9000).led(2, (2,), 3)  # type: ignore[attr-defined]
    story.add(e.BecomesFollower, 1, P0, 2, 3, 9, 4)
    story.over()
    log = [logged(event) for event in story.events if isinstance(event, e.ZkTransaction)]
    stranger = logged(e.ZkTransaction(0, 0, 0, "", -1, 99, "setData", "/config", "x", 5))
    of_server = logged(e.ZkTransaction(0, 0, 0, "", -1, 98, "create", "/zookeeper/config"))
    return [*story.events, *log[:-1], stranger, of_server]


def logged(of: e.ZkTransaction) -> ZkLogged:
    """The same in the server's log; a multi has its parts."""
    ops = tuple(LoggedOp(o.op, o.path, o.data, o.version) for o in of.ops)
    facts = of.zxid, of.op, of.path, of.data, of.version, False, ops, None, None, (), 1, 0
    return ZkLogged(-1, of.t, of.broker, "", -1, *facts)


def two() -> list[Any]:
    story = Story().created()
    story.over()
    return story.events


@pytest.fixture(scope="module")
def events(spark: SparkSession, tmp_path_factory: Any) -> Iterator[DataFrame]:
    base: Path = tmp_path_factory.mktemp("by-hand")
    for name, happened, conflicts, verdict in (
        ("one", one(), 1.0, "violated"), ("two", two(), 0.0, "held"),
    ):  # fmt: skip
        ended = RunEnded(
            *(-1, END_US, 0, "", -1), verdict, False, (Figure("conflicts", conflicts),), ()
        )
        key = RunKey("by-hand", "2.6", "zk", name)
        write_run(base, key, rows.began(SCENARIO, 7), happened, ended)
    rows_ = tables.events(spark, open_dataset(base))
    with caching(rows_):
        yield rows_


def table(name: str, of: DataFrame, *columns: str) -> list[tuple[Any, ...]]:
    """These columns, and the run that each row leads to."""
    found = aggregations()[name].aggregate(of).toArrow().to_pylist()
    wanted = (*columns, "worst_run")
    told = [tuple(_short(row[column]) for column in wanted) for row in found]
    return sorted(told, key=str)


def _short(value: Any) -> Any:
    return round(value, 6) if isinstance(value, float) else value


def test_who_connects_fetches_and_serves(events: DataFrame) -> None:
    """Only of run `one`: the other one has no load. A rate is over its 10 s."""
    columns = ("broker", "zookeeper_connections", "fetcher_connections", "fetches_sent")
    more = ("fetches_served", "fetches_sent_per_s", "partitions_per_fetch", "control_requests")
    assert table("broker_load", events, *columns, *more, "runs") == [
        (1, 2, 0, 0, 4, 0.0, None, 0, 1, "one"),
        (2, 1, 1, 3, 0, 0.3, 1.0, 0, 1, "one"),
        (3, 0, 0, 1, 0, 0.1, 1.0, 2, 1, "one"),
    ]


def test_conditional_writes_and_those_that_were_refused(events: DataFrame) -> None:
    """Two `setData` with a version, one of them answered with BadVersion; two updates begun."""
    columns = ("conditional_writes", "conflicts", "conflict_rate", "isr_updates", "rejected")
    more = ("rejection_rate", "runs", "runs_with_conflicts")
    assert table("cas_conflicts", events, *columns, *more) == [(2, 1, 0.5, 2, 1, 0.5, 1, 1, "one")]


def test_the_trace_beside_the_servers_log(events: DataFrame) -> None:
    """Transactions 1, 2 and 3 are in both, 4 is traced only, 99 logged only; what the server does
    for itself does not count. The leader's version 1 was logged, so was the controller's 2."""
    columns = ("what", "in_both", "only_traced", "only_logged", "runs")
    assert table("ground_truth", events, *columns) == [
        ("ISR updates", 1, 0, 1, 1, "one"),
        ("transactions", 3, 1, 1, 1, "one"),
    ]


def test_records_above_the_high_watermark(events: DataFrame) -> None:
    """The leader had none for 3 s and five until it ended at 9 s, while the mark did not move."""
    columns = ("partitions", "seconds", "behind_s", "mean", "p50", "max", "runs")
    assert table("hw_lag", events, *columns) == [(1, 9.0, 6.0, 3.333333, 5.0, 5.0, 1, "one")]


def test_meters_by_kafkas_names(events: DataFrame) -> None:
    """A rate is over both runs' 20 s."""
    server = "kafka.server:type=ReplicaManager,name="
    assert table("isr_rates", events, "metric", "count", "seconds", "mean_rate", "runs") == [
        (f"{server}FailedIsrUpdatesPerSec", 1, 20.0, 0.05, 2, "one"),
        (f"{server}IsrExpandsPerSec", 0, 20.0, 0.0, 2, "two"),
        (f"{server}IsrShrinksPerSec", 1, 20.0, 0.05, 2, "one"),
    ]


def test_a_partition_lost_its_leader_and_got_one_who_was_not_in_sync(events: DataFrame) -> None:
    columns = ("leader_changes", "unclean", "partitions_offline", "controller_elections")
    assert table("leader_changes", events, *columns, "runs", "leader_changes_per_run") == [
        (1, 1, 1, 1, 2, 0.5, "one")
    ]


def test_settings_against_outcomes(events: DataFrame) -> None:
    assert table("outcomes", events, "figure", "mean", "p50", "p95", "max", "runs") == [
        ("conflicts", 0.5, 0.0, 1.0, 1.0, 2, "one"),
        ("verdict: held", 1.0, 1.0, 1.0, 1.0, 1, "two"),
        ("verdict: violated", 1.0, 1.0, 1.0, 1.0, 1, "one"),
    ]


def test_how_long_partitions_were_in_which_condition(events: DataFrame) -> None:
    """From 4 s on one replica of three is in sync, and two are required; 7 s to 9 s without a
    leader, whose gauges then say nothing. The partitions of both runs were there for 20 s."""
    columns = ("condition", "partitions", "seconds", "share", "one_partition_s_max", "runs")
    assert table("partition_health", events, *columns) == [
        ("at min ISR", 0, 0.0, 0.0, 0.0, 0, "two"),
        ("offline", 1, 2.0, 0.1, 2.0, 1, "one"),
        ("under min ISR", 1, 4.0, 0.2, 4.0, 1, "one"),
        ("under-replicated", 1, 4.0, 0.2, 4.0, 1, "one"),
    ]


def test_what_producers_were_told(events: DataFrame) -> None:
    """With acks=all four records in two batches, after 20 and 10 ms, and four records refused."""
    columns = ("acks", "acknowledged", "refused", "availability", "p50", "max", "runs")
    assert table("produce_availability", events, *columns, "runs_with_refusals") == [
        ("1", 5, 0, 1.0, 2.0, 2.0, 1, 0, "one"),
        ("all", 4, 4, 0.5, 15.0, 20.0, 1, 1, "one"),
    ]


def test_what_zookeeper_is_asked_by_whom(events: DataFrame) -> None:
    """Bytes are those of path and payload (é has two); two scheduler threads are one actor, and
    there was one ISR change."""
    columns = ("actor", "op", "requests", "bytes", "requests_per_change", "bytes_per_change")
    both = 2 * len(PATH) + 4
    assert table("zookeeper_load", events, *columns, "runs") == [
        ("controller-event-thread", "getData", 1, 11, 1.0, 11.0, 1, "one"),
        ("kafka-scheduler-N", "setData", 2, both, 2.0, float(both), 1, "one"),
    ]
