"""The port from an action to a world, and the registry of actions.

An action is a small frozen struct. Its fields are its parameters, as in scenarios and recordings;
its `apply` calls the world. To add one, add a file to this package with one or more subclasses of
`Action`; the registry finds them by their tags. An action must declare a `tag`, its fields and
`apply`; `healed`, `wrong`, `weight` and `drawn` are optional. If it needs a new operation of the
world, add a method to `BrokerHost`, `Links`, `Clients` or `ZooKeeperControl` here. A kind of host
without that method refuses the action before anything starts (`capabilities.py`). Nothing here
depends on a particular world.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import ClassVar, NewType, Protocol

import msgspec

from emulator.kernel.holds import Place
from emulator.registry import classes_of
from emulator.scenario.actions.drawing import Draw, Ways, link_between
from emulator.trace.values import Parameters
from zk.wire import When

Signed = NewType("Signed", int)
"""A number that may be negative; others may not."""

ZOOKEEPER = "zookeeper"
"""The whole service: the only server, or all servers of the ensemble."""


def names_of(servers: int) -> tuple[str, ...]:
    """The names of ZooKeeper's servers: the service, and each server by number if there are
    several."""
    return (ZOOKEEPER, *(f"{ZOOKEEPER}-{n + 1}" for n in range(servers if servers > 1 else 0)))


class BrokerHost(Protocol):
    """One broker in any world. Times are in milliseconds."""

    @property
    def is_running(self) -> bool:
        """Whether it has a process that is not shutting down."""
        ...

    def pause(self) -> None:
        """Suspend the process like SIGSTOP."""
        ...

    def resume(self) -> None: ...

    def kill(self) -> None:
        """End the process like SIGKILL."""
        ...

    def terminate(self) -> None:
        """Requests an orderly shutdown of the process, like SIGTERM."""
        ...

    def lose_from_disk(self, what: str) -> None:
        """Destroy data of a process that was just killed: `nothing`, `unflushed` or `disk`."""
        ...

    def fail_log_dir(self, directory: int) -> None:
        """Let all writes to a log directory fail."""
        ...

    def repair_log_dir(self, directory: int) -> None: ...

    def slow_disk(self, ms_per_append: int) -> None:
        """Delay every append to a log by this time; 0: no delay."""
        ...

    def use_up_descriptors(self) -> None:
        """Leave no free file descriptor to the broker's process."""
        ...

    def free_descriptors(self) -> None: ...

    def set_clock(self, offset_ms: int) -> None:
        """Set its wall clock so far ahead of the machine's, or (negative) behind it."""
        ...

    def install(self, profile: str, propagation: str) -> None:
        """Set the version that the broker's next process runs (empty: unchanged)."""
        ...

    def fail_disk_calls(self, directory: int, call: str, count: int | None) -> None:
        """Let the next `count` calls (None: all) of this kind (empty: any) for files of a log
        directory fail with EIO."""
        ...

    def limit_space(self, free_bytes: int) -> None:
        """Limit the free space."""
        ...

    def shorten_writes(self, directory: int) -> None:
        """Let writes to a log directory write only part of their bytes."""
        ...

    def damage_log(self, directory: int, how: str) -> None:
        """Damage a log of this directory by a `bit_flip` or a `bad_sector`."""
        ...

    def mend_disk(self) -> None:
        """Let all calls succeed again, and restore the free space."""
        ...

    def fail_authentication(self) -> None:
        """Make its ZooKeeper client report that authentication failed."""
        ...


class ZooKeeperControl(Protocol):
    """ZooKeeper's servers (`zookeeper`: all of them), and the brokers' sessions there."""

    def pause(self, server: str) -> None: ...

    def resume(self, server: str) -> None: ...

    def stop(self, server: str) -> None:
        """End the server's process like SIGKILL, if it runs."""
        ...

    def start(self, server: str) -> None:
        """Start a new process of the server on its data, if none runs."""
        ...

    def expire_session(self, broker: int) -> None:
        """Make the server expire the session of `broker`, if the server is reachable."""
        ...

    def forget_session(self, broker: int) -> None:
        """Make a modelled server forget the session of `broker`; its ephemeral znodes stay."""
        ...

    def end_session(self, broker: int) -> None:
        """Delete the ephemeral znodes of a forgotten session."""
        ...

    def drop_connection(self, broker: int, when: When, op: str | None, count: int) -> None:
        """Break the connection of `broker` at its next `count` requests of this kind (None: any),
        before or after each is applied; 0 cancels this."""
        ...


class Links(Protocol):
    """The links of brokers; a peer is a broker or `zookeeper`. Times are in milliseconds."""

    def cut(self, broker: int, peer: int | str, ways: Ways = "both") -> None:
        """Stop all traffic between the two. Existing connections stay open, new ones fail."""
        ...

    def heal(self, broker: int, peer: int | str) -> None: ...

    def delay(self, broker: int, peer: int | str, delay_ms: int) -> None:
        """Add `delay_ms` to every message between the two, in each direction; 0 removes the
        delay."""
        ...

    def link_latency(
        self, broker: int, peer: int | str, ways: Ways, times_ms: tuple[int, int, int]
    ) -> None:
        """Draws the latency of messages between the two from this range: minimum, typical,
        maximum."""
        ...

    def lose(self, broker: int, peer: int | str, ways: Ways, loss: float) -> None:
        """Lose this fraction of the messages between the two, retransmissions included."""
        ...

    def narrow(self, broker: int, peer: int, ways: Ways, bytes_per_s: int) -> None:
        """Limit the bandwidth between two brokers; 0: no limit."""
        ...

    def break_connection(
        self, broker: int, peer: int, when: When, request: str | None, late_ms: int, count: int
    ) -> None:
        """Break the connection at the next `count` such requests from `broker` to `peer`."""
        ...

    def limit_bandwidth(self, broker: int, bytes_per_s: int) -> None:
        """Limit the rate at which records reach `broker`; 0: no limit."""
        ...

    def unplug(self, broker: int) -> None:
        """Disconnect a broker from the network."""
        ...

    def plug_in(self, broker: int) -> None: ...


class Clients(Protocol):
    """The users of the cluster: administrators, producers, consumers."""

    def admin(self, request: Action) -> None:
        """Let a client send `request` (CreateTopics, AlterConfigs ...) to the cluster."""
        ...

    def produce(self, request: Action) -> None: ...

    def consume(self, request: Action) -> None: ...

    def stop_clients(self, topic: str, acks: str | None) -> None:
        """Producers of `topic` (with these acks) send no further records."""
        ...


class World(Protocol):
    """The parts of a cluster that actions reach."""

    @property
    def hosts(self) -> Mapping[int, BrokerHost]: ...

    @property
    def zookeeper(self) -> ZooKeeperControl: ...

    @property
    def links(self) -> Links: ...

    @property
    def clients(self) -> Clients: ...

    def start_again(self, broker: int, registered_ms: int | None) -> None:
        """Start a new process for a broker whose last one has ended or is ending."""
        ...

    def hold(self, place: Place) -> None:
        """Stop the next task or message that reaches this place."""
        ...

    def release(self, place: Place) -> None:
        """Let what was held at this place continue."""
        ...


class Action(
    msgspec.Struct, frozen=True, tag_field="do", forbid_unknown_fields=True, omit_defaults=True
):
    """An action applied to the cluster from outside. `makes_topic`: it creates its topic."""

    makes_topic: ClassVar[bool] = False

    by_shell: ClassVar[bool] = False
    """Whether on a real cluster ZooKeeper's shell carries it out."""

    means_all: ClassVar[bool] = False
    """Whether its name alone, without parameters, means all targets."""

    def apply(self, world: World) -> None:
        raise AssertionError(f"{type(self).__name__} does not say what it does")

    def enter_topics(self, topics: dict[str, int]) -> None:
        """Add the topics that it creates, with their number of partitions."""

    def healed(self) -> Action | None:
        """The action that undoes it (for a scenario's `for: 6s`); None if nothing does."""
        return None

    def ending(self) -> Action | None:
        """The action that ends it after its `for`; None if nothing does."""
        return self.healed()

    def undoes(self, other: Action) -> bool:
        """Whether this action ends the effect of `other`."""
        return other.healed() == self

    def wrong(self) -> str | None:
        """An error message if the parameters contradict each other."""
        return None

    weight: ClassVar[int] = 0
    """Its relative frequency in random worlds; 0: never."""

    soak_weight: ClassVar[int] = 0
    """Its relative frequency in a soak, for brokers that must not lose anything; 0: never."""

    is_random: ClassVar[bool] = False
    """Whether chance decides about each message while it lasts: a second run of the same script is
    then no repetition, so random scripts to be recorded leave it out."""

    needs_files: ClassVar[bool] = False
    """Whether it needs brokers with their logs in files."""

    weight_on_files: ClassVar[int] = 0
    """Its additional relative frequency in random worlds whose logs are in files."""

    lasts_ms: ClassVar[tuple[int, int]] = (100, 15_000)
    """The range of its duration in a random world, if it can be undone."""

    @classmethod
    def drawn(cls, draw: Draw) -> Action | None:
        """A random instance for a random world; None if the cluster has no target for it."""
        return None

    @classmethod
    def drawn_for_soak(cls, draw: Draw) -> Action | None:
        """One for a soak of processes."""
        return cls.drawn(draw)

    @classmethod
    def standing(cls, draw: Draw) -> list[Action]:
        """Instances that last through the whole faulty phase of a random world; usually none."""
        return []

    def holds(self) -> tuple[object, ...]:
        """The resources that it occupies until it is undone: meanwhile no other action on the same
        ones is drawn. By default its name and the link or broker."""
        broker, peer = getattr(self, "broker", None), getattr(self, "peer", None)
        if broker is not None and peer is not None:
            return (self.name, *link_between(broker, peer))
        return (self.name,) if broker is None else (self.name, broker)

    @property
    def parameters(self) -> Parameters:
        """Its parameters in the trace, without name and broker."""
        return msgspec.convert(msgspec.to_builtins(self), Parameters)

    @property
    def name(self) -> str:
        """The name in scenarios, recordings and traces."""
        return str(type(self).__struct_config__.tag)


@cache
def actions() -> dict[str, type[Action]]:
    """All actions by name, found by a scan of this package."""
    kinds = classes_of("emulator.scenario.actions", Action)
    return {str(kind.__struct_config__.tag): kind for kind in kinds}
