"""The port from an action to a world, and the registry of actions.

An action is a small frozen struct whose fields are its parameters, as a scenario or a recording
writes them; its `apply` calls the world. A new one is a new file in this package with one or more
subclasses of `Action`; the file's classes register themselves under their tags. It must declare a
`tag`, its fields and `apply`; `healed`, `wrong`, `weight` and `drawn` are optional. A call that the
world does not know yet becomes a method of `BrokerHost`, `Links`, `Clients` or `ZooKeeperControl`
here; a kind of host without that method refuses the action before anything starts
(`capabilities.py`). Nothing here knows which world it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import ClassVar, Protocol

import msgspec

from emulator.kernel.holds import Place
from emulator.registry import classes_of
from emulator.scenario.actions.drawing import Draw, Ways, link_between
from emulator.trace.values import Parameters
from zk.wire import When

ZOOKEEPER = "zookeeper"
"""The service: the server, or all of them."""


def names_of(servers: int) -> tuple[str, ...]:
    """What ZooKeeper's servers are called: all of them, and each by its number if there are
    more."""
    return (ZOOKEEPER, *(f"{ZOOKEEPER}-{n + 1}" for n in range(servers if servers > 1 else 0)))


class BrokerHost(Protocol):
    """One broker, wherever it runs. Times in milliseconds."""

    @property
    def is_running(self) -> bool:
        """It has a process that is not about to end."""
        ...

    def pause(self) -> None:
        """Stop the process as SIGSTOP does."""
        ...

    def resume(self) -> None: ...

    def kill(self) -> None:
        """End the process as SIGKILL does."""
        ...

    def terminate(self) -> None:
        """Ask the process to end in an orderly way, as SIGTERM does."""
        ...

    def lose_from_disk(self, what: str) -> None:
        """The process has just been killed: this of the disk is gone: `nothing`, `unflushed`,
        `disk`."""
        ...

    def fail_log_dir(self, directory: int) -> None:
        """Writes to a log directory are errors."""
        ...

    def repair_log_dir(self, directory: int) -> None: ...

    def slow_disk(self, ms_per_append: int) -> None:
        """Every append to a log takes this long; 0: as usual."""
        ...

    def fill_disk(self) -> None:
        """Its disk has no space left."""
        ...

    def free_disk(self) -> None: ...

    def use_up_descriptors(self) -> None:
        """Its process can open nothing more."""
        ...

    def free_descriptors(self) -> None: ...

    def install(self, profile: str, propagation: str) -> None:
        """From its next process on it runs this version (empty: the one it has)."""
        ...

    def fail_disk_calls(self, directory: int, call: str, count: int | None) -> None:
        """The next `count` calls (None: all) of this kind (empty: any) for files of a log directory
        fail with EIO."""
        ...

    def limit_space(self, free_bytes: int) -> None:
        """So much space is left."""
        ...

    def shorten_writes(self, directory: int) -> None:
        """Writes to a log directory take a part of their bytes."""
        ...

    def damage_log(self, directory: int, how: str) -> None:
        """A log of this directory has a `bit_flip` or a `bad_sector`."""
        ...

    def mend_disk(self) -> None:
        """All calls succeed again, and there is space."""
        ...

    def fail_authentication(self) -> None:
        """Tell its ZooKeeper client that it could not authenticate."""
        ...


class ZooKeeperControl(Protocol):
    """ZooKeeper's servers (`zookeeper`: all of them) and the sessions that brokers have there."""

    def pause(self, server: str) -> None: ...

    def resume(self, server: str) -> None: ...

    def stop(self, server: str) -> None:
        """End the server's process as SIGKILL does; nothing if there is none."""
        ...

    def start(self, server: str) -> None:
        """A new process of the server, on its data; nothing if there is one."""
        ...

    def expire_session(self, broker: int) -> None:
        """Have the server end the session of `broker`, if the server can be reached."""
        ...

    def forget_session(self, broker: int) -> None:
        """Have a modelled server not know the session of `broker` any more; its ephemerals stay."""
        ...

    def end_session(self, broker: int) -> None:
        """What a session held that was forgotten goes."""
        ...

    def drop_connection(self, broker: int, when: When, op: str | None, count: int) -> None:
        """Break the connection of `broker` at its next `count` requests of this kind (None: any),
        before or after each is applied; 0: at no more."""
        ...


class Links(Protocol):
    """The links of brokers; a peer is a broker or `zookeeper`. Times in milliseconds."""

    def cut(self, broker: int, peer: int | str, ways: Ways = "both") -> None:
        """Stop the bytes between the two; connections stay, none is made."""
        ...

    def heal(self, broker: int, peer: int | str) -> None: ...

    def delay(self, broker: int, peer: int | str, delay_ms: int) -> None:
        """Add `delay_ms` to every message between the two, each way; 0 takes it away."""
        ...

    def link_latency(
        self, broker: int, peer: int | str, ways: Ways, times_ms: tuple[int, int, int]
    ) -> None:
        """Let messages between the two take longer, by chance: least, typical, most."""
        ...

    def lose(self, broker: int, peer: int | str, ways: Ways, loss: float) -> None:
        """Lose this share of the messages between the two, each time one is sent."""
        ...

    def narrow(self, broker: int, peer: int, ways: Ways, bytes_per_s: int) -> None:
        """Let no more pass between two brokers; 0: no limit."""
        ...

    def break_connection(
        self, broker: int, peer: int, when: When, request: str | None, late_ms: int, count: int
    ) -> None:
        """Break the connection at the next `count` such requests of `broker` to `peer`."""
        ...

    def limit_bandwidth(self, broker: int, bytes_per_s: int) -> None:
        """Let records reach `broker` no faster than this; 0: no limit."""
        ...

    def unplug(self, broker: int) -> None:
        """Take the network away from a broker."""
        ...

    def plug_in(self, broker: int) -> None: ...


class Clients(Protocol):
    """Everybody who uses the cluster: administrators, producers, consumers."""

    def admin(self, request: Action) -> None:
        """Have a client send what `request` asks for (CreateTopics, AlterConfigs ...) to the
        cluster."""
        ...

    def produce(self, request: Action) -> None:
        """Start a producer."""
        ...

    def consume(self, request: Action) -> None:
        """Start a consumer."""
        ...

    def stop_clients(self, topic: str, acks: str | None) -> None:
        """Producers of `topic` (with these acks) hand over no further records."""
        ...


class World(Protocol):
    """What actions reach: a cluster in its parts."""

    @property
    def hosts(self) -> Mapping[int, BrokerHost]: ...

    @property
    def zookeeper(self) -> ZooKeeperControl: ...

    @property
    def links(self) -> Links: ...

    @property
    def clients(self) -> Clients: ...

    def start_again(self, broker: int, registered_ms: int | None) -> None:
        """A new process of a broker whose last one ended, or is about to."""
        ...

    def hold(self, place: Place) -> None:
        """Let the next that comes to this place stand there."""
        ...

    def release(self, place: Place) -> None:
        """Let go of what was held there."""
        ...


class Action(
    msgspec.Struct, frozen=True, tag_field="do", forbid_unknown_fields=True, omit_defaults=True
):
    """Something done to the cluster from outside. `makes_topic`: its topic is not there before."""

    makes_topic: ClassVar[bool] = False

    means_all: ClassVar[bool] = False
    """Whether it may be said alone: for all that there is."""

    def apply(self, world: World) -> None:
        """Do it."""
        raise AssertionError(f"{type(self).__name__} does not say what it does")

    def enter_topics(self, topics: dict[str, int]) -> None:
        """Note topics that it makes, and the number of partitions that they have then."""

    def healed(self) -> Action | None:
        """What undoes it (a scenario's `for: 6s`); None when nothing does."""
        return None

    def ending(self) -> Action | None:
        """What ends it after a time that is given with it (`for`); None when nothing does."""
        return self.healed()

    def undoes(self, other: Action) -> bool:
        """Whether `other` is no longer in effect after this."""
        return other.healed() == self

    def wrong(self) -> str | None:
        """An error message if the parameters contradict each other."""
        return None

    weight: ClassVar[int] = 0
    """How often random worlds do it, beside the others; 0: never."""

    soak_weight: ClassVar[int] = 0
    """How often a soak does it to brokers that must lose nothing, beside the others; 0: never."""

    needs_files: ClassVar[bool] = False
    """Whether the brokers' logs must be in files."""

    weight_on_files: ClassVar[int] = 0
    """How often random worlds do it besides, where logs are in files."""

    lasts_ms: ClassVar[tuple[int, int]] = (100, 15_000)
    """How long it lasts in a random world, where something heals it."""

    @classmethod
    def drawn(cls, draw: Draw) -> Action | None:
        """One for a random world; None when the cluster has nothing to do it to."""
        return None

    @classmethod
    def standing(cls, draw: Draw) -> list[Action]:
        """What of it a random world has from its first fault to its last; mostly nothing."""
        return []

    def holds(self) -> tuple[object, ...]:
        """What it has in its hands until it is healed: nothing else that holds the same is done
        meanwhile. By default, its name for the same link or broker."""
        broker, peer = getattr(self, "broker", None), getattr(self, "peer", None)
        if broker is not None and peer is not None:
            return (self.name, *link_between(broker, peer))
        return (self.name,) if broker is None else (self.name, broker)

    @property
    def parameters(self) -> Parameters:
        """What its event says of it, beside the name and the broker."""
        return msgspec.convert(msgspec.to_builtins(self), Parameters)

    @property
    def name(self) -> str:
        """Its name in scenarios, recordings and traces."""
        return str(type(self).__struct_config__.tag)


@cache
def actions() -> dict[str, type[Action]]:
    """All actions by name; found by a scan of this package."""
    kinds = classes_of("emulator.scenario.actions", Action)
    return {str(kind.__struct_config__.tag): kind for kind in kinds}
