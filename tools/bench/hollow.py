"""What a controller costs: real Kafka 2.6.3 beside ours, over hollow brokers on this machine.

Broker 1 is the controller and broker 2 stands by, both real or both ours; neither has a replica.
The hollow brokers share one process. Replicas are placed in a ring, so that a hollow broker follows
two others: its own work stays small. Measured: creation, the loss of a broker and the loss of the
controller, each from its cause to the last metadata cache; requests by kind; memory. Real time, and
Maven.
"""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import yaml

from emulator.cli.parts.target import EMBEDDED, PROCESSES, read_kafka_logs
from emulator.runs.play import PlayOptions
from emulator.runs.session import Session
from emulator.scenario.actions.admin import CreateTopic
from emulator.scenario.actions.life import Kill
from emulator.scenario.load import loads
from emulator.trace.events import ActionReturned, AnyEvent
from emulator.worlds.processes.hollow import REQUEST, STATES, Count
from emulator.worlds.processes.hollow_brokers import HollowBroker
from emulator.worlds.processes.kafka_process import KafkaProcess
from emulator.worlds.processes.linked_sessions import named
from emulator.worlds.processes.local_brokers import LocalBroker
from emulator.worlds.processes.local_site import LocalDeployment
from emulator.worlds.processes.world import ProcessWorld
from tools.bench.against_kafka import Phases, masked, side_by_side
from tools.bench.against_kafka import Seen as Phase
from tools.bench.figures import Figure
from zk import paths
from zk.ops import Request
from zk.real.txnlog import Entry, LogTail

KAFKA = "2.6.3"
CONTROLLER, STANDBY = 1, 2
FIRST_HOLLOW = 3
REPLICATION = 3
SIZES = ((50, 5_000), (100, 5_000), (200, 5_000), (50, 20_000), (50, 50_000), (200, 20_000))
"""Brokers at a constant number of partitions; partitions at a constant number of brokers; both."""
PER_TOPIC = 1_000
SESSION_MS, STOP_AFTER_S = 18_000, 11.0
"""A client pings after a third: the session ends 12 s after a kill at the earliest."""
CONTROL = ("LeaderAndIsr", "UpdateMetadata", "StopReplica")
PATIENCE_US = 400_000_000
AT_ONCE = 20
QUIET_S = 3.0
"""Metadata that is not followed by more for so long was the last."""
_LOOK_US = 250_000
MOST_GB = 4.0


class Side(msgspec.Struct, frozen=True):
    """What came of it with one kind of controller. `processor_s`: of the active controller."""

    phases: Phases
    processor_s: dict[str, float]
    hollow_mb: float
    controller_mb: float
    up_s: float


class HollowCluster:
    """What the measurement does to it."""

    def __init__(self, session: Session, hollow: int) -> None:
        world = session.world
        assert isinstance(world, ProcessWorld)
        assert isinstance(world.site, LocalDeployment)
        self.world, self.site, self.kernel = world, world.site, world.kernel
        self.hollow_ids = range(FIRST_HOLLOW, FIRST_HOLLOW + hollow)
        self._log = LogTail(self.site.server.txn_log_dir)
        self._entries: list[Entry] = []
        self.answers = 0
        world.sink.listen(self._on_event)

    def _on_event(self, event: AnyEvent) -> None:
        if isinstance(event, ActionReturned):
            self.answers += 1
            self.kernel.stop()

    def bring_up(self) -> None:
        """The controller first, the stand-by next, and then all others together."""
        hosts = self.world.cluster.hosts
        for broker in (CONTROLLER, STANDBY):
            self.world.cluster.start(broker)
            self.until(f"broker {broker} is up", partial(self._have_started, (broker,)))
        # Some at a time: each has ZooKeeper's connection time-out to get through its boot.
        for first in self.hollow_ids[::AT_ONCE]:
            now = [broker for broker in self.hollow_ids if first <= broker < first + AT_ONCE]
            for broker in now:
                self.world.cluster.start(broker)
            self.until("some are up", partial(self._have_started, now))
        self.until("all are up", lambda: all(host.started for host in hosts.values()))
        self.until("all know all", lambda: self.world.cluster.is_up)

    def _have_started(self, brokers: Sequence[int]) -> bool:
        return all(self.world.cluster.hosts[broker].started for broker in brokers)

    def until(self, what: str, done: Callable[[], bool]) -> None:
        limit_us = self.kernel.now + PATIENCE_US
        while not done():
            assert self.kernel.now < limit_us, f"not within {PATIENCE_US / 1e6:g} s: {what}"
            self.kernel.run(self.kernel.now + _LOOK_US)

    def count(self, kind: str) -> Count:
        """Of what hollow brokers have done."""
        return self.site.hollow.counts().kinds.get(kind, Count())

    def last_metadata_s(self, before: int, states: int) -> float:
        """When the hollow brokers' caches had taken `states` more, and no others followed; by the
        monotonic clock."""
        last = Count()

        def is_quiet() -> bool:
            nonlocal last
            last = self.count(STATES)
            quiet_s = time.monotonic() - last.last_ns / 1e9
            return last.count - before >= states and quiet_s > QUIET_S

        self.until("the last metadata", is_quiet)
        return last.last_ns / 1e9

    def when_logged(self, since: int, is_it: Callable[[Entry], bool]) -> float:
        """Wait until ZooKeeper has logged it; when, by the monotonic clock. `since`: the entry to
        begin at."""
        matches: list[Entry] = []

        def is_logged() -> bool:
            self.log_size()
            matches.extend(filter(is_it, self._entries[since:]))
            return bool(matches)

        self.until("ZooKeeper's log", is_logged)
        return matches[0].at_ms / 1000 - time.time() + time.monotonic()

    def log_size(self) -> int:
        self._entries += self._log.read()
        return len(self._entries)

    def pid_of(self, broker: int) -> int:
        process = self.world.cluster.hosts[broker].process
        assert isinstance(process, (LocalBroker, KafkaProcess))
        return process.pid

    def session_of(self, broker: int) -> int:
        process = self.world.cluster.hosts[broker].process
        if isinstance(process, HollowBroker):
            return process.sessions[-1]
        return list(self.world.links.tap_of(broker).sessions)[-1]

    def control_requests(self) -> Counter[str]:
        """What hollow brokers have received of a controller."""
        kinds = self.site.hollow.counts().kinds
        return Counter(
            {
                kind: kinds[f"{REQUEST}{kind}"].count
                for kind in CONTROL
                if f"{REQUEST}{kind}" in kinds
            }
        )


@contextmanager
def hollow_cluster(hollow: int, *, is_real: bool) -> Iterator[HollowCluster]:
    hosts = dict.fromkeys(range(FIRST_HOLLOW, FIRST_HOLLOW + hollow), "hollow")
    if is_real:
        hosts |= {CONTROLLER: f"kafka {KAFKA}", STANDBY: f"kafka {KAFKA}"}
    config = {
        "zookeeper.session.timeout.ms": SESSION_MS,
        "replica.fetch.wait.max.ms": 5_000,
        "replica.lag.time.max.ms": 60_000,
        "auto.leader.rebalance.enable": False,
        # The hollow brokers take a fail-over's metadata for longer than Kafka's 30 s. A request
        # that is sent again would be counted twice.
        "request.timeout.ms": PATIENCE_US // 1000,
    }
    cluster = {"brokers": hollow + 2, "first": CONTROLLER, "config": config}
    scenario = loads(yaml.safe_dump({"cluster": cluster, "hosts": hosts, "run": "1s"}), "hollow")
    with TemporaryDirectory(prefix="isr-hollow-") as scratch:
        options = PlayOptions(
            seed=0,
            zookeeper=EMBEDDED,
            target=PROCESSES,
            data_dir=Path(scratch) / "run" / "zookeeper",
            read_kafka=read_kafka_logs(scenario),
        )
        with Session(scenario, options, hearing="nothing") as session:
            yield HollowCluster(session, hollow)


# -- what is done to it ----------------------------------------------------------------------------


class PhaseClock:
    """One phase as it is measured: what the controller was asked, sent, and took meanwhile."""

    def __init__(self, cluster: HollowCluster, controller: int) -> None:
        self._cluster, self._controller = cluster, controller
        self._exchanges = len(cluster.world.links.zookeeper_requests)
        self._control = cluster.control_requests()
        self._processor_s = processor_s(cluster.pid_of(controller))
        self.states = cluster.count(STATES).count
        self.began_s = time.monotonic()
        self.ms: dict[str, float] = {}

    def add(self, segment: str, from_s: float, to_s: float) -> None:
        self.ms[segment] = (to_s - from_s) * 1000

    def seen(self) -> tuple[Phase, float]:
        """And the seconds of processor time."""
        cluster = self._cluster
        passed = cluster.world.links.zookeeper_requests[self._exchanges :]
        name = f"broker-{self._controller}"
        kinds = Counter(kind_of(one.request) for one in passed if one.client == name)
        control = cluster.control_requests() - self._control
        took_s = processor_s(cluster.pid_of(self._controller)) - self._processor_s
        return Phase(kinds + control, self.ms), took_s


def measure(hollow: int, partitions: int, *, is_real: bool) -> Side:
    began_s = time.monotonic()
    with hollow_cluster(hollow, is_real=is_real) as cluster:
        cluster.bring_up()
        up_s = time.monotonic() - began_s
        made = {
            "creation": create(cluster, partitions),
            "a broker lost": lose_broker(cluster, partitions),
        }
        controller_mb = resident_mb(cluster.pid_of(CONTROLLER))
        made["the controller lost"] = lose_controller(cluster, partitions)
        return Side(
            phases={name: phase for name, (phase, _) in made.items()},
            processor_s={name: took_s for name, (_, took_s) in made.items()},
            hollow_mb=resident_mb(cluster.site.hollow.pid),
            controller_mb=controller_mb,
            up_s=up_s,
        )


def create(cluster: HollowCluster, partitions: int) -> tuple[Phase, float]:
    """Topics of 1,000 partitions, until every replica has its role and every cache all of them."""
    ring, per_topic = cluster.hollow_ids, min(partitions, PER_TOPIC)
    placed = tuple(
        tuple(ring[(number + step) % len(ring)] for step in range(REPLICATION))
        for number in range(per_topic)
    )
    clock = PhaseClock(cluster, CONTROLLER)
    for number in range(partitions // per_topic):
        cluster.answers = 0
        cluster.world.cluster.apply(CreateTopic(f"t{number}", placed))
        # One after the other: how many a controller takes at once would depend on its speed.
        cluster.until("a topic is created", lambda: cluster.answers > 0)
    last_s = cluster.last_metadata_s(clock.states, partitions * len(ring))
    roles = [cluster.count("BecomesLeader"), cluster.count("BecomesFollower")]
    assert sum(role.count for role in roles) >= REPLICATION * partitions, roles
    clock.add("to the last replica in its role", clock.began_s, max(r.last_ns for r in roles) / 1e9)
    clock.add("to the last metadata", clock.began_s, last_s)
    return clock.seen()


def lose_broker(cluster: HollowCluster, partitions: int) -> tuple[Phase, float]:
    """It leads one partition of each ring's length, and follows in two."""
    lost, since = cluster.hollow_ids[-1], cluster.log_size()
    session, others = cluster.session_of(lost), len(cluster.hollow_ids) - 1
    clock = PhaseClock(cluster, CONTROLLER)
    cluster.world.cluster.apply(Kill(lost))
    gone_s = cluster.when_logged(since, lambda entry: is_end(entry, session))
    changed = REPLICATION * partitions // len(cluster.hollow_ids)
    last_s = cluster.last_metadata_s(clock.states, changed * others)
    clock.add("session ended to the last metadata", gone_s, last_s)
    return clock.seen()


def lose_controller(cluster: HollowCluster, partitions: int) -> tuple[Phase, float]:
    """All are candidates: the hollow ones stop until the stand-by is elected. They stop late: their
    own sessions must last."""
    since, others = cluster.log_size(), len(cluster.hollow_ids) - 1
    session = cluster.session_of(CONTROLLER)
    clock = PhaseClock(cluster, STANDBY)
    cluster.world.cluster.apply(Kill(CONTROLLER))
    stop_s = time.monotonic() + STOP_AFTER_S
    cluster.until("its session has seconds left", lambda: time.monotonic() > stop_s)
    os.kill(cluster.site.hollow.pid, signal.SIGSTOP)
    try:
        gone_s = cluster.when_logged(since, lambda entry: is_end(entry, session))
        elected_s = cluster.when_logged(since, is_election)
    finally:
        os.kill(cluster.site.hollow.pid, signal.SIGCONT)
    last_s = cluster.last_metadata_s(clock.states, partitions * others)
    clock.add("session ended to elected", gone_s, elected_s)
    clock.add("elected to the last metadata", elected_s, last_s)
    return clock.seen()


def is_end(entry: Entry, session: int) -> bool:
    transaction = entry.transaction
    return transaction.op == "closeSession" and transaction.session_id == session


def is_election(entry: Entry) -> bool:
    transaction = entry.transaction
    made = transaction.ops or (transaction,)
    return any(one.op == "create" and one.path == paths.CONTROLLER for one in made)


def kind_of(request: Request | str) -> str:
    """Without the numbers and names of what it is about."""
    name = request if isinstance(request, str) else named(request)
    return re.sub(r"/(topics|changes)/[^/]+", r"/\1/T", masked(name))


def processor_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if "VmRSS" in line) / 1024


# -- side by side ----------------------------------------------------------------------------------


def figures(sizes: Sequence[tuple[int, int]] = SIZES) -> list[Figure]:
    made: list[Figure] = []
    for hollow, partitions in sizes:
        real = measured(hollow, partitions, is_real=True)
        made += compared(hollow, partitions, real, measured(hollow, partitions, is_real=False))
    return made


def tiny_figures() -> list[Figure]:
    """Ours beside itself: no Maven."""
    side = measure(4, 8, is_real=False)
    return list(compared(4, 8, side, side))


def measured(hollow: int, partitions: int, *, is_real: bool) -> Side:
    kind = f"Kafka {KAFKA}" if is_real else "ours"
    print(
        f"  {hollow} hollow brokers, {partitions:,} partitions, controller: {kind}", file=sys.stderr
    )
    side = measure(hollow, partitions, is_real=is_real)
    # A measurement of many minutes: what is interrupted has shown this.
    print(f"  {msgspec.json.encode(side).decode()}", file=sys.stderr)
    return side


def compared(hollow: int, partitions: int, real: Side, ours: Side) -> Iterator[Figure]:
    cluster = f"{hollow} hollow brokers, {partitions:,} partitions × {REPLICATION}"
    for phase in real.phases:
        yield from side_by_side(phase, real.phases, ours.phases, f"our controller; {cluster}")
        yield Figure(
            what=f"{phase}: the controller's processor time per partition",
            value=ours.processor_s[phase] / partitions * 1000,
            unit="ms",
            scope=f"our controller; {cluster}",
            reference="real Kafka",
            of=real.processor_s[phase] / partitions * 1000,
        )
    for side, name in ((real, f"Kafka {KAFKA}"), (ours, "ours")):
        yield Figure(
            what=f"memory of all hollow brokers, controller: {name}",
            value=side.hollow_mb / 1024,
            unit="GB",
            scope=f"{side.hollow_mb / hollow:.1f} MB per broker; {cluster}; the controller has"
            f" {side.controller_mb:.0f} MB; all were up after {side.up_s:.0f} s",
            most=MOST_GB,
        )
