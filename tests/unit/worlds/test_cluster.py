"""A cluster of hosts of different kinds: each is given what is done to its broker, and what one of
them cannot be given is refused before it is carried out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

import pytest

from emulator.scenario.actions.admin import PreferredElection
from emulator.scenario.actions.base import Action
from emulator.scenario.actions.clients import Consume, Produce, ProduceStop
from emulator.scenario.actions.drawing import Ways
from emulator.scenario.actions.forget_session import ForgetSession
from emulator.scenario.actions.life import Crash, Kill, Start, Terminate
from emulator.scenario.actions.link import CutLink, CutZookeeperLink
from emulator.scenario.actions.pause import Pause, Resume
from emulator.scenario.actions.slow import SlowDisk, SlowFollower
from emulator.scenario.actions.stop_zookeeper import StopZookeeper
from emulator.scenario.actions.unplug import Unplug
from emulator.scenario.capabilities import Capabilities, ClusterCapabilities
from emulator.scenario.errors import UserError
from emulator.worlds.clients.emulated import AnyClient
from emulator.worlds.cluster import Cluster
from emulator.worlds.emulated_host import InThisProcess
from emulator.worlds.processes.host import SeparateProcess
from emulator.worlds.real_kafka.capabilities import HostOfKafka
from emulator.worlds.zookeeper import OwnServer
from zk.wire import When

Calls = list[tuple[object, ...]]


class DoubledHost:
    """Records its calls."""

    def __init__(self, name: str, calls: Calls) -> None:
        self._name, self._calls = name, calls
        self.process, self.shutting_down = True, False
        self._then: Callable[[], object] = lambda: None

    def _call(self, *call: object) -> None:
        self._calls.append((self._name, *call))

    def boot(self, not_before_us: Mapping[str, int] | None = None) -> None:
        self.process, self.shutting_down = True, False
        self._call("boot")

    @property
    def started(self) -> bool:
        return self.process

    @property
    def is_running(self) -> bool:
        return self.process and not self.shutting_down

    def knows(self, brokers: Collection[int]) -> bool:
        return self.process

    def when_dead(self, then: Callable[[], object]) -> None:
        if self.process:
            self._then = then
        else:
            then()

    def die(self) -> None:
        self.process = False
        self._then()

    def end(self) -> None:
        self._call("end")

    def join(self) -> None:
        self._call("join")

    def pause(self) -> None:
        self._call("pause")

    def resume(self) -> None:
        self._call("resume")

    def kill(self) -> None:
        self.process = False
        self._call("kill")

    def terminate(self) -> None:
        self.shutting_down = True
        self._call("terminate")

    def lose_from_disk(self, what: str) -> None:
        self._call("lose_from_disk", what)

    def fail_log_dir(self, directory: int) -> None:
        self._call("fail_log_dir", directory)

    def repair_log_dir(self, directory: int) -> None:
        self._call("repair_log_dir", directory)

    def slow_disk(self, ms_per_append: int) -> None:
        self._call("slow_disk", ms_per_append)

    def use_up_descriptors(self) -> None:
        self._call("use_up_descriptors")

    def free_descriptors(self) -> None:
        self._call("free_descriptors")

    def set_clock(self, offset_ms: int) -> None:
        self._call("set_clock", offset_ms)

    def install(self, profile: str, propagation: str) -> None:
        self._call("install", profile, propagation)

    def fail_authentication(self) -> None:
        self._call("fail_authentication")


class OtherParts:
    """ZooKeeper, links and clients in one."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    def pause(self, server: str) -> None:
        self._calls.append((server, "pause"))

    def resume(self, server: str) -> None:
        self._calls.append((server, "resume"))

    def stop(self, server: str) -> None:
        self._calls.append((server, "stop"))

    def start(self, server: str) -> None:
        self._calls.append((server, "start"))

    def expire_session(self, broker: int) -> None: ...

    def forget_session(self, broker: int) -> None: ...

    def end_session(self, broker: int) -> None: ...

    def drop_connection(self, broker: int, when: When, op: str | None, count: int) -> None: ...

    def cut(self, broker: int, peer: int | str, ways: Ways = "both") -> None:
        self._calls.append(("links", "cut", broker, peer, ways))

    def heal(self, broker: int, peer: int | str) -> None: ...

    def delay(self, broker: int, peer: int | str, delay_ms: int) -> None: ...

    def link_latency(
        self, broker: int, peer: int | str, ways: Ways, times_ms: tuple[int, int, int]
    ) -> None: ...

    def lose(self, broker: int, peer: int | str, ways: Ways, loss: float) -> None: ...

    def narrow(self, broker: int, peer: int, ways: Ways, bytes_per_s: int) -> None: ...

    def break_connection(
        self, broker: int, peer: int, when: When, request: str | None, late_ms: int, count: int
    ) -> None: ...

    def limit_bandwidth(self, broker: int, bytes_per_s: int) -> None:
        self._calls.append(("links", "limit_bandwidth", broker, bytes_per_s))

    def unplug(self, broker: int) -> None:
        self._calls.append(("links", "unplug", broker))

    def plug_in(self, broker: int) -> None: ...

    def admin(self, request: Action) -> None:
        self._calls.append(("clients", request.name))

    def produce(self, request: Action) -> None:
        self._calls.append(("clients", request.name))

    def consume(self, request: Action) -> None:
        self._calls.append(("clients", request.name))

    def stop_clients(self, topic: str, acks: str | None) -> None:
        self._calls.append(("clients", "stop", topic, acks))


class NoPlace(Capabilities):
    subject = "a mixed cluster"


class Mixed:
    """Broker 1 in this process, 2 a process of its own, 3 real Kafka."""

    def __init__(self) -> None:
        self.calls: Calls = []
        self.done: list[str] = []
        other = OtherParts(self.calls)
        kinds = {1: InThisProcess(), 2: SeparateProcess(), 3: HostOfKafka((2, 6, 3))}
        self.hosts = {broker: DoubledHost(f"host {broker}", self.calls) for broker in kinds}
        self.cluster = Cluster(
            self.hosts,
            other,
            other,
            other,
            ClusterCapabilities(kinds, OwnServer(), AnyClient(), NoPlace()),
            lambda action: self.done.append(action.name),
        )

    def apply(self, action: Action) -> Calls:
        """The calls on the parts."""
        self.calls.clear()
        self.cluster.apply(action)
        return self.calls


@pytest.fixture
def mixed() -> Mixed:
    return Mixed()


P = ("orders", (0,))
GIVEN: list[tuple[Action, Calls]] = [
    (Pause(1), [("host 1", "pause")]),
    (Pause(2), [("host 2", "pause")]),
    (Resume(3), [("host 3", "resume")]),
    (Pause(server="zookeeper"), [("zookeeper", "pause")]),
    (StopZookeeper(), [("zookeeper", "stop")]),
    (Kill(3), [("host 3", "kill")]),
    (Crash(2, "disk"), [("host 2", "kill"), ("host 2", "lose_from_disk", "disk")]),
    (Crash(1, "unflushed"), [("host 1", "kill"), ("host 1", "lose_from_disk", "unflushed")]),
    (SlowDisk(1, 5), [("host 1", "slow_disk", 5)]),
    (CutLink(1, 3), [("links", "cut", 1, 3, "both")]),
    (CutZookeeperLink(3), [("links", "cut", 3, "zookeeper", "both")]),
    (SlowFollower(2, 9), [("links", "limit_bandwidth", 2, 9)]),
    (Unplug(2), [("links", "unplug", 2)]),
    (Produce(*P, rate=1.0), [("clients", "produce")]),
    (Consume(*P), [("clients", "consume")]),
    (ProduceStop("orders"), [("clients", "stop", "orders", None)]),
    (PreferredElection(), [("clients", "preferred_election")]),
]


@pytest.mark.parametrize(("action", "calls"), GIVEN, ids=lambda one: getattr(one, "name", ""))
def test_each_action_reaches_the_part_that_it_is_for(
    mixed: Mixed, action: Action, calls: Calls
) -> None:
    assert mixed.apply(action) == calls
    assert mixed.done == [action.name]


REFUSED: list[tuple[Action, str]] = [
    (SlowDisk(2, 5), "slow disk is not supported for processes of their own"),
    (SlowDisk(3, 5), "slow disk is not supported for real processes"),
    (Crash(3, "unflushed"), "the operating system keeps unflushed records"),
    (Start(3, profile="2.7"), "install is not supported for real processes"),
    (Start(2, registered_ms=5), "nobody can say when a process registers"),
    (SlowFollower(3, 9), "limit bandwidth is not supported for real processes"),
    (ForgetSession(1), "a real ZooKeeper server does not support"),
    (StopZookeeper("zookeeper-2"), "there is one ZooKeeper server"),
]


@pytest.mark.parametrize(("action", "why"), REFUSED)
def test_what_a_part_cannot_be_given_is_refused_and_nothing_is_done(
    mixed: Mixed, action: Action, why: str
) -> None:
    with pytest.raises(UserError, match=why):
        mixed.apply(action)
    assert (mixed.calls, mixed.done) == ([], [])


def test_a_link_can_be_given_what_both_of_its_ends_can(mixed: Mixed) -> None:
    old = HostOfKafka((0, 10, 1))
    kinds = {1: InThisProcess(), 3: old}
    capabilities = ClusterCapabilities(kinds, OwnServer(), AnyClient(), NoPlace())
    assert capabilities.refusal(CutLink(1, 3)) == capabilities.refusal(CutLink(3, 1)) != ""
    assert capabilities.refusal(CutZookeeperLink(3)) == ""


@pytest.mark.parametrize("broker", [1, 2, 3])
def test_one_that_is_about_to_end_is_followed_when_it_has(mixed: Mixed, broker: int) -> None:
    with pytest.raises(UserError, match=f"broker {broker} runs already"):
        mixed.apply(Start(broker))
    assert mixed.apply(Start(broker, if_down=True)) == []
    mixed.apply(Terminate(broker))
    assert mixed.apply(Start(broker)) == []
    mixed.hosts[broker].die()
    assert mixed.calls == [(f"host {broker}", "boot")]


def test_it_is_up_when_every_host_knows_all_and_ends_all_before_it_waits(mixed: Mixed) -> None:
    assert mixed.cluster.is_up
    mixed.apply(Kill(2))
    assert not mixed.cluster.is_up
    mixed.calls.clear()
    mixed.cluster.close()
    assert [what for _, what in mixed.calls] == ["end"] * 3 + ["join"] * 3
