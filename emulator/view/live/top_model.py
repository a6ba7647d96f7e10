"""The data of `isr top` as plain values: one look at a running cluster in all views.

Owns how the views of a partition are compared with ZooKeeper's and shown in a cell. It does not
know how they are obtained.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from emulator.view.event_text import counted, ids
from emulator.view.live.zookeeper_view import Seen, SeenPartition, SeenState, leader_name

SAME, UNKNOWN = "=", "?"


class BrokerLook(msgspec.Struct, frozen=True):
    """A broker's own views. `metadata`: its cache; `leads`: the partitions that it leads;
    `controls`: the controller's cache, if it is the controller. None: not reported."""

    metadata: dict[str, SeenState] | None = None
    leads: dict[str, SeenState] | None = None
    controls: dict[str, SeenState] | None = None
    controller: int | None = None
    problem: str = ""


class Look(msgspec.Struct, frozen=True):
    """One moment. `conflicts_per_s` None: not counted."""

    seen: Seen = Seen()
    brokers: dict[int, BrokerLook] = {}
    connected: bool = False
    conflicts_per_s: float | None = None
    zookeeper: str = ""


def headline(look: Look) -> str:
    """Controller, epochs and pending commands in one line."""
    seen = look.seen
    who = "no controller" if seen.controller is None else f"controller {seen.controller}"
    short = sum(one.is_under_replicated for one in seen.partitions.values())
    # As OfflinePartitionsCount: topics that are being deleted are left out.
    offline = sum(
        one.is_offline and one.topic not in seen.deleting for one in seen.partitions.values()
    )
    conflicts = UNKNOWN if look.conflicts_per_s is None else f"{look.conflicts_per_s:.1f}"
    words = [
        f"{look.zookeeper}{'' if look.connected else ' (not connected)'}",
        f"{who}, epoch {UNKNOWN if seen.controller_epoch is None else seen.controller_epoch}",
        counted(len(seen.brokers), "broker"),
        counted(len(seen.partitions), "partition"),
        f"{short} under-replicated, {offline} offline",
        f"{counted(len(seen.notifications), 'notification')} pending",
        f"conflicts/s {conflicts}",
    ]
    words += [f"deleting {', '.join(seen.deleting)}"] * bool(seen.deleting)
    words += ["reassigning"] * seen.reassigning + ["electing"] * seen.electing
    words += [f"malformed: {text}" for text in seen.malformed]
    return "   ".join(words)


def broker_line(look: Look, broker: int) -> str:
    """A registration, and the broker's own report."""
    one = look.seen.brokers[broker]
    report = look.brokers.get(broker)
    words = [f"broker {broker}", f"{one.host}:{one.port}", f"epoch {one.epoch}"]
    words += ["CONTROLLER"] * (look.seen.controller == broker)
    if report is not None and report.problem:
        words.append(f"does not respond: {report.problem}")
    elif report is not None and report.controller not in (None, look.seen.controller):
        words.append(f"believes broker {report.controller} is controller")
    return "  ".join(words)


def state_words(state: SeenState | None) -> str:
    """`1 e0 [1,2,3] v4`."""
    if state is None:
        return "none"
    version = "" if state.zk_version is None else f" v{state.zk_version}"
    return f"{leader_name(state.leader)} e{state.leader_epoch} {ids(state.isr)}{version}"


def agrees(state: SeenState, with_zookeeper: SeenState) -> bool:
    """Whether all known fields are equal to ZooKeeper's; an epoch of -1 is unknown. The order of
    the ISR is ignored, because some sources report a set."""
    return (
        state.leader == with_zookeeper.leader
        and state.leader_epoch in (-1, with_zookeeper.leader_epoch)
        and set(state.isr) == set(with_zookeeper.isr)
        and state.zk_version in (None, with_zookeeper.zk_version)
    )


def cell(state: SeenState | None, in_zookeeper: SeenState | None, *, known: bool) -> str:
    """A view compared with ZooKeeper's: `=`, or the different values; `?` if no broker reported
    it."""
    if not known:
        return UNKNOWN
    if state is None:
        return SAME if in_zookeeper is None else "none"
    if in_zookeeper is not None and agrees(state, in_zookeeper):
        return SAME
    return state_words(state)


def views(look: Look, partition: SeenPartition) -> Iterator[tuple[str, SeenState | None, str]]:
    """(owner, state, cell): the controller's view, then each broker's metadata cache, and the
    leader's own."""
    own, name = partition.state, partition.name
    controller = look.brokers.get(look.seen.controller or -1, BrokerLook())
    yield _view(f"controller {look.seen.controller or ''}".strip(), controller.controls, name, own)
    leader = own.leader if own is not None else -1
    leads = look.brokers.get(leader, BrokerLook()).leads
    yield _view(f"leader {leader_name(leader)}", leads, name, own)
    for broker in look.seen.brokers:
        metadata = look.brokers.get(broker, BrokerLook()).metadata
        yield _view(f"metadata {broker}", metadata, name, own)


def _view(
    whose: str, report: dict[str, SeenState] | None, name: str, own: SeenState | None
) -> tuple[str, SeenState | None, str]:
    state = (report or {}).get(name)
    return whose, state, cell(state, own, known=report is not None)


def differs(look: Look, partition: SeenPartition) -> bool:
    """Whether any view differs from ZooKeeper's."""
    return any(text not in (SAME, UNKNOWN) for _, _, text in views(look, partition))
