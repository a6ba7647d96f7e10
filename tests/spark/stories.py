"""Random runs: small clusters with arbitrary events in a plausible order.

They combine in a few events what a real trace rarely has together: versions that are never shown,
topics deleted and recreated, brokers killed while their metadata is stale, unnecessary
notifications.
"""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from emulator.analysis.dataset import RunKey
from emulator.runs import dataset_rows as rows
from emulator.scenario.load import loads
from emulator.trace import events as e
from emulator.trace.rows import BrokenRow, Figure, RunEnded, ZkLogged
from emulator.trace.values import (
    LoggedOp,
    Offset,
    Parameters,
    PartitionState,
    ProcessState,
    TopicPartition,
)
from tests.spark.reading import Run

PLACES = (TopicPartition("orders", 0), TopicPartition("orders", 1), TopicPartition("clicks", 0))
BROKERS = (1, 2, 3)
SCENARIO = loads("cluster: {config: {min.insync.replicas: 2}}\nrun: 9s", "by chance")
Draw = Any


class Story:
    """A trace in the making; what it knows of the cluster is what makes the next step possible."""

    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        self.events: list[Any] = []
        self.t = 0
        self.zxid = 0
        self.state: dict[TopicPartition, tuple[int, int, tuple[int, ...]]] = {}

    def one(self, *of: Any) -> Any:
        return self.draw(st.sampled_from(of))

    def add(self, kind: Any, broker: int, *fields: Any, thread: str = "t-1", **more: Any) -> None:
        self.events.append(kind(len(self.events), self.t, broker, thread, -1, *fields, **more))

    def path(self, p: TopicPartition) -> str:
        return f"/brokers/topics/{p.topic}/partitions/{p.partition}/state"

    def data(self, leader: int, isr: tuple[int, ...]) -> str:
        return json.dumps({"leader": leader, "leader_epoch": 0, "isr": isr, "controller_epoch": 1})

    def transaction(
        self, broker: int, op: str, *fields: Any, ops: tuple[LoggedOp, ...] = ()
    ) -> None:
        self.zxid += self.one(1, 1, 1, 2)
        self.add(e.ZkTransaction, broker, self.zxid, op, *fields, ops=ops)

    # -- what may happen ---------------------------------------------------------------------------

    def create(self, p: TopicPartition) -> None:
        if p in self.state:
            return
        isr = self.one((1, 2, 3), (2, 3), (1,))
        ops = (
            LoggedOp("check", "/controller_epoch", version=1),
            LoggedOp("create", self.path(p), self.data(isr[0], isr)),
        )
        self.transaction(3, "multi", ops=ops)
        self.state[p] = 0, isr[0], isr
        for broker in isr:
            state = PartitionState(p, 1, isr[0], 0, isr, 0, (1, 2, 3))
            self.add(e.LeaderAndIsr, broker, 3, 1, state)

    def failed_multi(self, p: TopicPartition) -> None:
        ops = (LoggedOp("error", code=-101), LoggedOp("error", code=-2))
        self.transaction(3, "multi", ops=ops)

    def change(self, p: TopicPartition) -> None:
        if p not in self.state:
            return
        version, leader, before = self.state[p]
        change, isr = self.one(("shrink", (1,)), ("expand", (1, 2, 3)), ("expand", (1, 2)))
        self.add(e.IsrUpdateStarted, leader, p, change, before, isr, 5, 9, 0, version)
        self.add(e.ZkSent, leader, "setData", self.path(p), version, "bytes é", thread="isr-7")
        self.t += self.one(0, 1_000, 30_000)
        if self.one(True, True, False):
            self.transaction(leader, "setData", self.path(p), self.data(leader, isr), version + 1)
            self.state[p] = version + 1, leader, isr
            self.add(e.ZkReply, leader, "setData", self.path(p), 0, version + 1, 900)
            self.t += self.one(0, 500)
            self.add(e.IsrUpdated, leader, p, change, isr, version + 1, 0)
        else:
            self.add(e.ZkReply, leader, "setData", self.path(p), -103, -1, 900)
            self.add(e.IsrUpdateRejected, leader, p, change, version)

    def elect(self, p: TopicPartition) -> None:
        if p in self.state:
            version, _, isr = self.state[p]
            leader = self.one(-1, 1, 2, 3)
            op = LoggedOp("setData", self.path(p), self.data(leader, isr), version + 1)
            self.transaction(3, "multi", ops=(LoggedOp("check", "/controller_epoch"), op))
            self.state[p] = version + 1, leader, isr
            self.cached(p)

    def cached(self, p: TopicPartition) -> None:
        if p in self.state:
            version, leader, isr = self.state[p]
            self.add(e.ControllerCacheUpdated, 3, p, leader, 0, isr, version, "told")

    def delete(self, p: TopicPartition) -> None:
        if self.state.pop(p, None):
            self.transaction(3, "delete", self.path(p))

    def notify(self, p: TopicPartition) -> None:
        named = self.one((p,), PLACES[:2], PLACES)
        told = [{"topic": one.topic, "partition": one.partition} for one in named]
        path = f"/isr_change_notification/isr_change_{len(self.events):010}"
        self.transaction(1, "create", path, json.dumps({"version": 1, "partitions": told}))
        self.add(e.IsrChangeNotified, 1, path, named, 5_100, 9_000)

    def hold(self, p: TopicPartition) -> None:
        self.add(e.IsrChangeHeld, 1, (p,), 100, 200)

    def show(self, p: TopicPartition) -> None:
        known = [(one, *self.state[one]) for one in PLACES if one in self.state]
        broker = self.one(*BROKERS)
        states = tuple(
            PartitionState(q, 1, leader, 0, isr, max(0, version - self.one(0, 0, 1)), (1, 2, 3))
            for q, version, leader, isr in known
        )
        removed = () if p in self.state else (p,)
        self.add(e.MetadataCacheUpdated, broker, 3, 1, BROKERS, states, removed)

    def die(self, _: TopicPartition) -> None:
        broker = self.one(*BROKERS)
        state: ProcessState = self.one("dead", "paused", "stopping", "up")
        if self.one(True, False):
            self.add(e.ActionApplied, broker, self.one("kill", "crash", "pause"), Parameters())
        self.add(e.ProcessStateChanged, broker, state)

    def start(self, _: TopicPartition) -> None:
        broker = self.one(*BROKERS)
        self.add(e.BrokerStarting, broker, "2.6")
        self.add(e.ProcessStateChanged, broker, "starting")
        self.add(e.ZkRequest, self.one(*BROKERS), self.one("connect", "getData"))

    def lead(self, p: TopicPartition) -> None:
        broker, leo = self.one(*BROKERS), self.one(-1, 3, 9)
        kind = self.one(e.BecomesLeader, e.BecomesLeader, e.BecomesFollower)
        other = () if kind is e.BecomesLeader else (1,)
        self.add(kind, broker, p, *other, 0, leo, self.one(0, 2, leo))

    def append(self, p: TopicPartition) -> None:
        base = self.one(0, 4, 9)
        self.add(e.RecordsAppended, self.one(*BROKERS), p, "leader", base, base + 3, 0, 100)
        self.add(e.LogTruncated, self.one(*BROKERS), p, base, self.one(0, base))

    def stop(self, p: TopicPartition) -> None:
        self.add(e.StopReplica, self.one(*BROKERS), 3, 1, p, 0, False)

    def delete_topic(self, p: TopicPartition) -> None:
        path = f"/admin/delete_topics/{p.topic}"
        self.transaction(3, self.one("create", "delete"), path)

    def configure(self, p: TopicPartition) -> None:
        config = self.one({"min.insync.replicas": "3"}, {"min.insync.replicas": "1"}, {})
        parameters = Parameters(topic=p.topic, config=config)
        self.add(e.ActionApplied, 0, self.one("create_topic", "topic_config"), parameters)

    def produce(self, p: TopicPartition) -> None:
        result = self.one("ok", "ok", "_MSG_TIMED_OUT")
        handed_over = max(0, self.t - self.one(0, 1_000, 70_000))
        acks, count = self.one("all", "1"), self.one(1, 7)
        self.add(e.RecordsProduced, 0, "p", p, acks, result, 3, count, handed_over)
        self.add(e.HwAdvanced, 1, p, self.one("leader", "follower"), 4, 4 + self.one(0, 2, 9))

    def work(self, p: TopicPartition) -> None:
        broker, leader = self.one(*BROKERS), self.one(*BROKERS)
        self.add(e.FetchSent, broker, leader, self.one((), (Offset(p, 3), Offset(p, 4))), 1)
        self.add(self.one(e.FetcherStarted, e.FetcherStopped), broker, leader, 0)
        self.add(e.ControlRequestSent, 3, broker, "UpdateMetadata", (p,), 1)
        self.add(e.ControllerElected, 3, 2, 2)
        self.add(e.ZkSent, 3, "getData", "/controller", thread="controller-event-thread")


STEPS = tuple(step for name, step in sorted(vars(Story).items()) if name not in (
    "__init__", "__module__", "__doc__", "__dict__", "__weakref__", "one", "add", "path", "data",
    "transaction") and callable(step))  # fmt: skip


@st.composite
def runs(draw: Draw, name: str) -> Run:
    """A run of one of two settings; its server's log may be there too, or a part of it."""
    story = Story(draw)
    for p in PLACES[: draw(st.integers(1, 3))]:
        story.create(p)
    for _ in range(draw(st.integers(0, 25))):
        story.t += draw(st.sampled_from((0, 1_000, 5_000_000)))
        draw(st.sampled_from(STEPS))(story, draw(st.sampled_from(PLACES)))
    sets = draw(st.sampled_from(([], ["num.io.threads=4"])))
    began = rows.began(SCENARIO, 7, sets=sets, replay="isr run by-chance --seed 0x7")
    broken = draw(st.lists(st.sampled_from(("leader in isr", "logs agree")), max_size=2))
    violated = tuple(BrokenRow(what, "so", "", None, None, 0) for what in broken)
    figures = tuple(Figure(n, float(draw(st.integers(0, 9)))) for n in ("conflicts", "refused"))
    end = draw(st.sampled_from((0, story.t + 4_000_000)))
    ended = RunEnded(-1, end, 0, "", -1, "held", False, figures, violated)
    log = [_logged(one) for one in story.events if isinstance(one, e.ZkTransaction)]
    log = log[: draw(st.sampled_from((0, len(log), max(0, len(log) - 1))))]
    return Run(RunKey("by chance", "2.6", "zk", name), began, [*story.events, *log], ended)


def _logged(one: e.ZkTransaction) -> ZkLogged:
    return ZkLogged(
        *(-1, one.t, one.broker, "", -1),
        zxid=one.zxid,
        op=one.op,
        path=one.path,
        data=one.data,
        version=one.version,
        ephemeral=False,
        zk_transaction_ops=one.ops,
        code=one.code,
        timeout_ms=None,
        removed=(),
        session_id=1,
        logged_ms=one.t // 1000,
    )
