"""Single-fact changes to a recording: what a judge must notice, and the little it must not.

Owns the kinds of change and the sites in a recording where each applies. They try the judge, and
they try a guided search: the same search with the same budget must fail on the recording with
one fact altered. All is deterministic: a kind and the number of a site give one recording. This
module must not know how recordings are compared; `points` only says where a change belongs.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TypeAlias

import msgspec

from emulator.conformance.criteria import DELAYS
from emulator.conformance.recording import Fact, ProduceResult, Recording
from emulator.conformance.znodes import NOTIFICATIONS, decode_state, partition_of_state

Sites: TypeAlias = list[int]


@dataclass(frozen=True)
class Alteration:
    """One kind of change: where it can be made, how, and which points it belongs to."""

    name: str
    points: frozenset[int]
    sites: Callable[[Recording], Sites]
    at: Callable[[Recording, int], Recording]

    def altered(self, recording: Recording, nth: int) -> Recording:
        """The recording with this change at the nth of its sites, counted round and round."""
        sites = self.sites(recording)
        assert sites, f"{recording.name} has nowhere to put: {self.name}"
        return self.at(recording, sites[nth % len(sites)])


Applies: TypeAlias = Callable[[Fact], bool]
Change: TypeAlias = Callable[[Fact], Iterable[Fact]]


def _of_facts(name: str, points: set[int], applies: Applies, change: Change) -> Alteration:
    def sites(recording: Recording) -> Sites:
        return [i for i, fact in enumerate(recording.events) if applies(fact)]

    return Alteration(name, frozenset(points), sites, _with_fact(change))


def _of_unique_facts(name: str, points: set[int], applies: Applies, change: Change) -> Alteration:
    """Only facts that come once: the loss of a retry's repeat is no change at all."""

    def sites(recording: Recording) -> Sites:
        said = [_said(fact) for fact in recording.events]
        often = Counter(said)
        facts = enumerate(recording.events)
        return [i for i, fact in facts if applies(fact) and often[said[i]] == 1]

    return Alteration(name, frozenset(points), sites, _with_fact(change))


def _said(fact: Fact) -> bytes:
    """A fact without when it was: two with the same words are repeats."""
    return msgspec.json.encode({key: fact[key] for key in fact if key != "t"})


def _with_fact(change: Change) -> Callable[[Recording, int], Recording]:
    def at(recording: Recording, site: int) -> Recording:
        events = recording.events
        events = [*events[:site], *change(events[site]), *events[site + 1 :]]
        return replace(recording, events=sorted(events, key=lambda fact: fact["t"]))

    return at


def _lost(fact: Fact) -> list[Fact]:
    return []


def _doubled(fact: Fact) -> list[Fact]:
    return [fact, fact]


def _later(ms: int) -> Change:
    return lambda fact: [{**fact, "t": fact["t"] + ms}]


def _with(**values: Callable[[Fact], object]) -> Change:
    """The fact with some of its fields made anew from itself."""
    return lambda fact: [{**fact, **{key: make(fact) for key, make in values.items()}}]


def _kind(*kinds: str) -> Applies:
    return lambda fact: fact["kind"] in kinds


def _many(field: str, *kinds: str) -> Applies:
    return lambda fact: fact["kind"] in kinds and len(fact[field]) > 1


def _sent(*ops: str) -> Applies:
    """A compared ZooKeeper request of one of these kinds, on a partition's state or a list."""
    lists = ("/controller", "/brokers/ids", "/brokers/topics", "/isr_change_notification")
    return lambda fact: (
        fact["kind"] == "zookeeper_request"
        and fact["op"] in ops
        and fact["path"].startswith(lists)
        and "/__" not in fact["path"]
    )


def _applied(matches: Callable[[Fact], bool]) -> Applies:
    """A single operation that ZooKeeper applied."""
    return lambda fact: fact["kind"] == "zookeeper" and "ops" not in fact and matches(fact)


def _writes_state(op: Fact) -> bool:
    return op["op"] == "setData" and partition_of_state(op["path"]) is not None


def _writes_wide_state(op: Fact) -> bool:
    return _writes_state(op) and len(decode_state(op["data"]).isr) > 1


def _notifies(op: Fact) -> bool:
    return bool(op["op"] == "create" and op["path"].startswith(NOTIFICATIONS))


def _deletes_notifications(fact: Fact) -> bool:
    ops = fact.get("ops", ())
    named = any(op["op"] == "delete" and op["path"].startswith(NOTIFICATIONS) for op in ops)
    return fact["kind"] == "zookeeper" and named


def _data(**values: Callable[[Fact], object]) -> Change:
    """The operation with some fields of its payload made anew from the payload."""

    def payload(fact: Fact) -> str:
        data = msgspec.json.decode(fact["data"])
        made = {**data, **{key: make(data) for key, make in values.items()}}
        return msgspec.json.encode(made).decode()

    return _with(data=payload)


def _turned(field: str) -> Callable[[Fact], list[int]]:
    return lambda of: [*of[field][1:], of[field][0]]


def _one_more(field: str) -> Callable[[Fact], object]:
    return lambda of: of[field] + 1


def _other_broker(of: Fact) -> object:
    return 1 + of["broker"] % 3


def _one_named_less(data: Fact) -> list[object]:
    partitions: list[object] = data["partitions"]
    return partitions[:-1]


_STATE = _applied(_writes_state)
_NOTIFICATION = _applied(_notifies)
_CONTROL = ("leader_and_isr", "update_metadata")

_OF_FACTS = (
    _of_facts("a state written with its ISR in another order", {1}, _applied(_writes_wide_state),
              _data(isr=_turned("isr"))),
    _of_facts("a state written with another leader epoch", {1}, _STATE,
              _data(leader_epoch=_one_more("leader_epoch"))),
    _of_facts("a state written with another controller epoch", {1}, _STATE,
              _data(controller_epoch=_one_more("controller_epoch"))),
    _of_facts("a state written by another broker", {1}, _STATE, _with(broker=_other_broker)),
    _of_facts("a state written with another version", {1}, _STATE,
              _with(version=_one_more("version"))),
    _of_facts("a lost state write", {1}, _STATE, _lost),
    _of_facts("a doubled state write", {1}, _STATE, _doubled),
    _of_facts("a notification by another broker", {2}, _NOTIFICATION, _with(broker=_other_broker)),
    _of_facts("a notification that names a partition less", {2}, _NOTIFICATION,
              _data(partitions=_one_named_less)),
    _of_facts("a lost notification", {2}, _NOTIFICATION, _lost),
    _of_facts("a notification a second early", {DELAYS}, _NOTIFICATION, _later(-1000)),
    _of_facts("a notification a second late", {DELAYS}, _NOTIFICATION, _later(1000)),
    _of_facts("notifications deleted by another broker", {2}, _deletes_notifications,
              _with(broker=_other_broker)),
    _of_facts("notifications never deleted", {2}, _deletes_notifications, _lost),
    _of_facts("a session closed", {3}, _applied(lambda op: op["op"] == "createSession"),
              _with(op=lambda fact: "closeSession")),
    _of_facts("a control request with its ISR in another order", {4}, _many("isr", *_CONTROL),
              _with(isr=_turned("isr"))),
    _of_facts("a control request with another leader epoch", {4}, _kind(*_CONTROL),
              _with(leader_epoch=_one_more("leader_epoch"))),
    _of_facts("a control request with another znode version", {4}, _kind(*_CONTROL),
              _with(zk_version=_one_more("zk_version"))),
    _of_facts("a control request from another broker", {4}, _kind(*_CONTROL),
              _with(**{"from": lambda fact: 1 + fact["from"] % 3})),
    _of_facts("a LeaderAndIsr that says new where it was not", {4}, _kind("leader_and_isr"),
              _with(is_new=lambda fact: not fact["is_new"])),
    _of_facts("a replica offline in metadata", {4}, _kind("update_metadata"),
              _with(offline_replicas=lambda fact: [*fact["offline_replicas"], 9])),
    _of_facts("a lost control request", {4}, _kind(*_CONTROL), _lost),
    _of_facts("a doubled control request", {4}, _kind(*_CONTROL), _doubled),
    _of_facts("a shrink or expand to another order", {5}, _many("to_isr", "shrink", "expand"),
              _with(to_isr=_turned("to_isr"))),
    _of_facts("a lost shrink or expand", {5, DELAYS}, _kind("shrink", "expand"), _lost),
    _of_facts("a request with another watch flag", {6}, _sent("exists", "getData", "getChildren2"),
              _with(watch=lambda fact: not fact["watch"])),
    _of_facts("a request with another version", {6}, _sent("setData"),
              _with(version=_one_more("version"))),
    _of_unique_facts("a lost request", {6}, _sent("create", "setData"), _lost),
)  # fmt: skip


def _acknowledged(recording: Recording) -> Sites:
    return [i for i, result in enumerate(recording.results) if result.result == "ok"]


def _first_acknowledged(recording: Recording) -> Sites:
    return _acknowledged(recording)[:1]


def _acknowledged_early(recording: Recording) -> Sites:
    """Those in the first quarter: after a later one its producer may have had no other."""
    sites = _acknowledged(recording)
    return sites[: len(sites) // 4]


def _timed_out(recording: Recording, site: int) -> Recording:
    results = list(recording.results)
    results[site] = msgspec.structs.replace(results[site], result="MSG_TIMED_OUT", offset=None)
    return replace(recording, results=results)


def _without_a_third(recording: Recording, site: int) -> Recording:
    kept = [r for i, r in enumerate(recording.results) if i % 3]
    return replace(recording, results=kept)


def _then_silent(recording: Recording, site: int) -> Recording:
    """From one result on, all results of producers are two seconds late."""
    from_ms = recording.results[site].t
    results = [_later_from(from_ms, r) for r in recording.results]
    return replace(recording, results=results)


def _later_from(from_ms: int, result: ProduceResult) -> ProduceResult:
    return msgspec.structs.replace(result, t=result.t + 2000 * (result.t > from_ms))


_OF_RESULTS = (
    Alteration("a record that timed out", frozenset({7}), _acknowledged, _timed_out),
    Alteration("a third of the records lost", frozenset({7}), _first_acknowledged,
               _without_a_third),
    Alteration("a producer left without an answer", frozenset({7, DELAYS}), _acknowledged_early,
               _then_silent),
)  # fmt: skip

ALTERATIONS = (*_OF_FACTS, *_OF_RESULTS)

IGNORED = (
    _of_facts("a repeated list of children", set(), _sent("getChildren2"), _doubled),
    _of_facts("a repeated shrink or expand", set(), _kind("shrink", "expand"), _doubled),
    _of_facts("a rejected update repeated", set(), _kind("isr_update_rejected"), _doubled),
)
"""Repeats in a row, which retries explain."""
