"""Every table once more, in plain Python, one run after the other: what Spark's must be.

Written from the definitions in the heads of the aggregations, over events as objects; it shares no
line with them. What `trace.state` derives (staleness, water levels) is taken from there.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from emulator.trace import events as e
from emulator.trace.percentiles import nearest_rank
from emulator.trace.rows import ZkLogged
from emulator.trace.state import TraceState
from emulator.trace.state.partitions import Partition
from emulator.trace.state.spans import Known
from tests.spark.reading import (
    STATE,
    Place,
    Row,
    Run,
    Told,
    applied,
    by_group,
    place,
    share,
    spread,
    told_states,
    versions,
    worst,
)

# -- tables ----------------------------------------------------------------------------------------


def hw_lag(runs: Sequence[Run]) -> Iterator[Row]:
    """Each microsecond is a sample."""
    for group, members in by_group(runs):
        spent: dict[tuple[int, str], int] = Counter()
        partitions = set()
        for run in members:
            account = run.account
            for name in account.water_levels.leaderships:
                for lag in account.water_levels.hw_lags(name, account.clock.now_us):
                    spent[lag.records, run.key.run] += lag.to_us - lag.from_us
                    partitions.add((run.key.run, name))
        if spent:
            us = sum(spent.values())
            samples = sorted(spent.items())
            yield {
                **group,
                "partitions": len(partitions),
                "seconds": us / 1e6,
                "behind_s": sum(n for (records, _), n in samples if records > 0) / 1e6,
                "mean": sum(records * n for (records, _), n in samples) / us,
                **{f"p{part}": _weighted(samples, part / 100) for part in (50, 95, 99)},
                "max": samples[-1][0][0],
                "runs": len({run for _, run in spent}),
                "worst_run": samples[-1][0][1],
            }


def _weighted(samples: list[tuple[tuple[int, str], int]], part: float) -> float:
    """Interpolates between the two nearest samples, like `percentile`."""
    place = part * (sum(n for _, n in samples) - 1)

    def at(number: int) -> int:
        so_far = 0
        for (value, _), n in samples:
            so_far += n
            if number < so_far:
                return value
        raise AssertionError(number)

    low, high = at(int(place)), at(math.ceil(place))
    return low + (high - low) * (place - int(place))


def propagation_delay(runs: Sequence[Run]) -> Iterator[Row]:
    for group, members in by_group(runs):
        legs: dict[str, list[tuple[float, str]]] = defaultdict(list)
        for run in members:
            for leg, us in legs_of(run.account):
                legs[leg].append((us / 1000, run.key.run))
        for leg, samples in legs.items():
            count = {"count": len(samples), "runs": len({run for _, run in samples})}
            yield {**group, "leg": leg, **count, **spread(samples)}


def legs_of(account: TraceState) -> Iterator[tuple[str, int]]:
    """From the account: its decisions, its versions of states, its notifications, its caches."""
    for change in account.propagation.decided:
        started, ended = change.attempt.started, change.attempt.ended
        assert ended is not None
        name, version = started.partition, started.zk_version + 1
        yield "decision to leader", change.leader_us
        if change.controller_us is not None:
            yield "decision to controller", change.controller_us
        for us in change.metadata_us.values():
            yield "decision to broker", us
        written_us = _written_us(account.partitions.all[name], started, ended)
        yield "decision to zookeeper", written_us - started.t
        caches = account.controller.history.get(name, [])
        arrived_us = _first(caches, started.seq, version)
        if arrived_us is None:
            continue
        notices = (
            one.from_us
            for one in account.notifications.all
            if name in one.partitions and one.seq >= ended.seq
        )
        notified_us = next(notices, None)
        if notified_us is not None and notified_us <= arrived_us:
            yield "zookeeper to notification", notified_us - written_us
            yield "notification to controller", arrived_us - notified_us
        else:
            yield "zookeeper to controller", arrived_us - written_us
        for spans in account.metadata.history.get(name, {}).values():
            if (shown_us := _first(spans, started.seq, version)) is not None:
                yield "controller to broker", shown_us - arrived_us


def _written_us(partition: Partition, started: e.IsrUpdateStarted, ended: Any) -> int:
    """The version that the decision became: of those with its number the last one that was known
    by then (a topic may have been made twice)."""
    version = started.zk_version + 1
    states = [s for s in partition.history if s.version == version and s.seq <= ended.seq]
    return states[-1].from_us if states else int(ended.t)


def _first(spans: Sequence[Known], seq: int, version: int) -> int | None:
    return next((one.from_us for one in spans if one.seq > seq and one.version == version), None)


def metadata_arrivals(runs: Sequence[Run]) -> Iterator[Row]:
    for group, members in by_group(runs):
        samples: list[tuple[float, str]] = []
        concerned, never, awaited = set(), 0, 0
        for run in members:
            known = run.account.propagation
            samples += [(us / 1000, run.key.run) for us in known.written_us]
            never += known.never_shown
            awaited += known.not_yet_shown
            if known.written_us or known.never_shown or known.not_yet_shown:
                concerned.add(run.key.run)
        if concerned:
            none = dict.fromkeys(("p50", "p95", "p99", "max"))
            yield {
                **group,
                "count": len(samples),
                "never_shown": never,
                "not_yet_shown": awaited,
                "runs": len(concerned),
                **(spread(samples) if samples else {**none, "worst_run": max(concerned)}),
            }


def stale_metadata(runs: Sequence[Run]) -> Iterator[Row]:
    for group, members in by_group(runs):
        spans = [((to - at) / 1000, run.key.run) for run in members for at, to in _stale(run)]
        if spans:
            total = sum(ms for ms, _ in spans) / 1000
            every = sum(bool(run.of(e.MetadataCacheUpdated)) for run in members)
            yield {
                **group,
                "count": len(spans),
                "runs": len({run for _, run in spans}),
                "total_s": total,
                "total_s_per_run": total / every,
                **spread(spans),
            }


def _stale(run: Run) -> Iterator[tuple[int, int]]:
    account = run.account
    for name in account.metadata.history:
        for broker in account.staleness.brokers(name):
            yield from account.staleness.episodes(broker, name)


def isr_churn(runs: Sequence[Run]) -> Iterator[Row]:
    for group, members in by_group(runs):
        of_one: dict[tuple[str, Place], list[Any]] = defaultdict(list)
        ends = {run.key.run: run.end_t for run in members}
        for run in members:
            for event in run.of(e.IsrUpdated):
                of_one[run.key.run, place(event)].append(event)
        if not of_one:
            continue
        outs = sorted(
            (after.t - before.t) / 1000
            for changes in of_one.values()
            for before, after in itertools.pairwise(changes)
            if (before.change, after.change) == ("shrink", "expand")
        )
        every = [change for changes in of_one.values() for change in changes]
        whole = sum(ends[run] for run, _ in of_one)
        yield {
            **group,
            "partitions": len(of_one),
            "changes": len(every),
            "shrinks": sum(one.change == "shrink" for one in every),
            "expands": sum(one.change == "expand" for one in every),
            "changes_per_partition_hour": share(len(every) * 3.6e9, whole),
            "changes_of_one_partition_max": max(map(len, of_one.values())),
            "flaps": len(outs),
            "out_p50": nearest_rank(outs, 50) if outs else None,
            "out_p95": nearest_rank(outs, 95) if outs else None,
            "out_max": max(outs, default=None),
            "runs": len({run for run, _ in of_one}),
            "worst_run": max((len(changes), run) for (run, _), changes in of_one.items())[1],
        }


def isr_rates(runs: Sequence[Run]) -> Iterator[Row]:
    meters: dict[str, Callable[[Any], bool]] = {
        "IsrShrinksPerSec": lambda one: (
            isinstance(one, e.ControllerShrinkCounted)
            or (isinstance(one, e.IsrUpdated) and one.change == "shrink")
        ),
        "IsrExpandsPerSec": lambda one: isinstance(one, e.IsrUpdated) and one.change != "shrink",
        "FailedIsrUpdatesPerSec": lambda one: (
            isinstance(one, e.IsrUpdateRejected)
            or (isinstance(one, e.AlterIsrFailed) and one.outcome != "ignored")
        ),
    }
    for group, members in by_group(runs):
        seconds = sum(run.end_t for run in members) / 1e6
        for name, is_one in meters.items():
            counts = {run.key.run: sum(map(is_one, run.events)) for run in members}
            yield {
                **group,
                "metric": f"kafka.server:type=ReplicaManager,name={name}",
                "count": sum(counts.values()),
                "seconds": seconds,
                "mean_rate": share(sum(counts.values()), seconds),
                "runs": len(members),
                "worst_run": worst({**counts}),
            }


def cas_conflicts(runs: Sequence[Run]) -> Iterator[Row]:
    kinds = (e.ZkSent, e.ZkReply, e.IsrUpdateStarted, e.IsrUpdateRejected)
    for group, members in by_group(runs):
        concerned = [run for run in members if run.of(*kinds)]
        if not concerned:
            continue
        sent = [
            o
            for r in concerned
            for o in r.of(e.ZkSent)
            if o.op.endswith("setData") and o.version >= 0
        ]
        conflicts = {r.key.run: sum(o.code == -103 for o in r.of(e.ZkReply)) for r in concerned}
        updates = sum(len(r.of(e.IsrUpdateStarted)) for r in concerned)
        rejected = sum(len(r.of(e.IsrUpdateRejected)) for r in concerned)
        count = sum(conflicts.values())
        yield {
            **group,
            "conditional_writes": len(sent),
            "conflicts": count,
            "conflict_rate": count / len(sent) if sent else None,
            "isr_updates": updates,
            "rejected": rejected,
            "rejection_rate": rejected / updates if updates else None,
            "runs": len(concerned),
            "runs_with_conflicts": sum(n > 0 for n in conflicts.values()),
            "worst_run": worst({**conflicts}),
        }


def zookeeper_load(runs: Sequence[Run]) -> Iterator[Row]:
    for group, members in by_group(runs):
        found: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        sizes: Counter[tuple[str, str]] = Counter()
        for run in members:
            for event in run.of(e.ZkSent):
                key = re.sub(r"\d+", "N", event.thread), event.op
                found[key][run.key.run] += 1
                sizes[key] += len(event.path.encode()) + len(event.detail.encode())
        changes = sum(len(run.of(e.IsrUpdated)) for run in members)
        for (actor, op), counts in found.items():
            requests = counts.total()
            yield {
                **group,
                "actor": actor,
                "op": op,
                "requests": requests,
                "bytes": sizes[actor, op],
                "requests_per_change": requests / changes if changes else None,
                "bytes_per_change": sizes[actor, op] / changes if changes else None,
                "runs": len(counts),
                "worst_run": worst({**counts}),
            }


def notifications(runs: Sequence[Run]) -> Iterator[Row]:
    for group, members in by_group(runs):
        kinds = (e.IsrUpdated, e.IsrChangeNotified, e.IsrChangeHeld)
        concerned = [run for run in members if run.of(*kinds)]
        if not concerned:
            continue
        changes = sum(len(run.of(e.IsrUpdated)) for run in concerned)
        told = [len(o.partitions) for run in concerned for o in run.of(e.IsrChangeNotified)]
        yield {
            **group,
            "changes": changes,
            "notifications": len(told),
            "partitions_named": sum(told),
            "notifications_per_change": len(told) / changes if changes else None,
            "partitions_per_notification": sum(told) / len(told) if told else None,
            "partitions_in_one_max": max(told, default=None),
            "held": sum(len(run.of(e.IsrChangeHeld)) for run in concerned),
            "runs": len(concerned),
            "worst_run": worst({r.key.run: len(r.of(e.IsrChangeNotified)) for r in concerned}),
        }


def partition_health(runs: Sequence[Run]) -> Iterator[Row]:
    names = ("under-replicated", "at min ISR", "under min ISR", "offline")
    for group, members in by_group(runs):
        times: dict[str, list[tuple[int, str]]] = defaultdict(list)
        whole = 0
        for run in members:
            for where, told in told_states(run).items():
                there, spent = _condition_times(run, where, told)
                whole += there
                for name in names:
                    times[name].append((spent[name], run.key.run))
        for name, every in times.items():
            us = sum(one for one, _ in every)
            yield {
                **group,
                "condition": name,
                "partitions": sum(one > 0 for one, _ in every),
                "seconds": us / 1e6,
                "share": share(us, whole),
                "one_partition_s_max": max(every)[0] / 1e6,
                "runs": len({run for one, run in every if one > 0}),
                "worst_run": max(every)[1],
            }


def _condition_times(run: Run, where: Place, told: list[Told]) -> tuple[int, Counter[str]]:
    default = {s.name: s.value for s in run.began.settings}.get("min.insync.replicas", "1")
    moments: list[tuple[int, int, str, Any]] = [
        (one.seq, one.t, "told", one) for one in versions(told)
    ]
    moments += [
        (one.seq, one.t, "replicas", {*one.state.replicas} - {*one.state.adding_replicas})
        for one in run.of(e.LeaderAndIsr)
        if place(one.state) == where
    ]
    for event in run.of(e.MetadataCacheUpdated):
        moments += [
            (event.seq, event.t, "shown", {*state.replicas})
            for state in event.states
            if place(state) == where
        ]
    for event in run.of(e.ZkTransaction):
        for op in applied(event):
            if op.path == f"/admin/delete_topics/{where[0]}":
                moments.append((event.seq, event.t, "deleting", op.op == "create"))
    for event in run.of(e.ActionApplied):
        given = event.parameters
        config = (given.config or {}) if given.topic == where[0] else {}
        if event.do in ("create_topic", "topic_config") and "min.insync.replicas" in config:
            moments.append((event.seq, event.t, "min", int(config["min.insync.replicas"])))
    moments.sort(key=lambda one: one[0])
    now: dict[str, Any] = {"replicas": (), "min": int(default), "told": None, "deleting": False}
    there, spent = 0, Counter[str]()
    last_t = run.traced[-1].t
    for (_, t, what, value), after in zip(moments, [*moments[1:], (0, last_t)], strict=True):
        if what == "shown":
            now["replicas"] = now["replicas"] or value
        else:
            now[what] = value
        state = now["told"]
        if state is None or state.version is None:
            continue
        us = after[1] - t
        there += us
        has_leader, size = state.leader >= 0, len(state.isr)
        spent["under-replicated"] += us * (has_leader and size < len(now["replicas"]))
        spent["at min ISR"] += us * (has_leader and size == now["min"])
        spent["under min ISR"] += us * (has_leader and size < now["min"])
        spent["offline"] += us * (not has_leader and not now["deleting"])
    return there, spent


def leader_changes(runs: Sequence[Run]) -> Iterator[Row]:
    for group, members in by_group(runs):
        moved, unclean, lost = Counter[str](), 0, 0
        for run in members:
            moved[run.key.run] += 0
            for told in told_states(run).values():
                known = versions(told)
                for before, now in itertools.pairwise(known):
                    if now.generation != before.generation or now.version is None:
                        continue
                    old, new = before.leader or 0, now.leader or 0
                    lost += new < 0 <= old
                    if new >= 0 and new != before.leader:
                        moved[run.key.run] += 1
                        unclean += new not in before.isr
        yield {
            **group,
            "leader_changes": moved.total(),
            "unclean": unclean,
            "partitions_offline": lost,
            "controller_elections": sum(len(run.of(e.ControllerElected)) for run in members),
            "runs": len(members),
            "leader_changes_per_run": moved.total() / len(members),
            "worst_run": worst({**moved}),
        }


def produce_availability(runs: Sequence[Run]) -> Iterator[Row]:
    for group, members in by_group(runs):
        told = [(one, run.key.run) for run in members for one in run.of(e.RecordsProduced)]
        for acks in {one.acks for one, _ in told}:
            mine = [(one, run) for one, run in told if one.acks == acks]
            ok = [((o.t - o.handed_over) / 1000, run) for o, run in mine if o.result == "ok"]
            good = sum(one.count for one, _ in mine if one.result == "ok")
            bad = sum(one.count for one, _ in mine if one.result != "ok")
            none = dict.fromkeys(("p50", "p95", "p99", "max", "worst_run"))
            yield {
                **group,
                "acks": acks,
                "acknowledged": good,
                "refused": bad,
                "availability": good / (good + bad),
                **(spread(ok, weighted=True) if ok else none),
                "runs": len({run for _, run in mine}),
                "runs_with_refusals": len({run for one, run in mine if one.result != "ok"}),
            }


def violations(runs: Sequence[Run]) -> Iterator[Row]:
    for group, members in by_group(runs):
        found: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        for run in members:
            for one in run.ended.violations:
                found[one.invariant, one.hazard][run.key.run] += 1
        for (invariant, hazard), counts in found.items():
            yield {
                **group,
                "invariant": invariant,
                "hazard": hazard,
                "count": counts.total(),
                "runs": len(counts),
                "runs_in_all": len(members),
                "share_of_runs": len(counts) / len(members),
                "worst_run": worst({**counts}),
            }


def broker_load(runs: Sequence[Run]) -> Iterator[Row]:
    for group, members in by_group(runs):
        found: dict[int, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
        for run in members:
            for broker, what, n in _work(run):
                found[broker][run.key.run][what] += n
        ends = {run.key.run: run.end_t for run in members}
        for broker, of_runs in found.items():
            seconds = sum(ends[run] for run in of_runs) / 1e6
            every = sum(of_runs.values(), Counter[str]())
            sent, served = every["fetches_sent"], every["fetches_served"]
            yield {
                **group,
                "broker": broker,
                "zookeeper_connections": every["zookeeper_connections"],
                "fetcher_connections": every["fetcher_connections"],
                "fetches_sent": sent,
                "fetches_served": served,
                "fetches_sent_per_s": share(sent, seconds),
                "fetches_served_per_s": share(served, seconds),
                "partitions_per_fetch": every["named"] / sent if sent else None,
                "control_requests": every["control_requests"],
                "runs": len(of_runs),
                "worst_run": worst({run: n["fetches_served"] for run, n in of_runs.items()}),
            }


def _work(run: Run) -> Iterator[tuple[int, str, int]]:
    for event in run.of(e.FetchSent):
        yield event.broker, "fetches_sent", 1
        yield event.broker, "named", len(event.offsets)
        yield event.leader, "fetches_served", 1
    for event in run.of(e.FetcherStarted):
        yield event.broker, "fetcher_connections", 1
    for event in run.of(e.ControlRequestSent):
        yield event.broker, "control_requests", 1
    for event in run.of(e.ZkRequest):
        if event.op == "connect":
            yield event.broker, "zookeeper_connections", 1


def outcomes(runs: Sequence[Run]) -> Iterator[Row]:
    for group, members in by_group(runs):
        found: dict[str, list[tuple[float, str]]] = defaultdict(list)
        for run in members:
            found[f"verdict: {run.ended.verdict}"].append((1.0, run.key.run))
            for one in run.ended.figures:
                found[one.name].append((one.value, run.key.run))
        for figure, samples in found.items():
            mean = sum(value for value, _ in samples) / len(samples)
            runs_ = len({run for _, run in samples})
            yield {**group, "figure": figure, "mean": mean, "runs": runs_, **spread(samples)}


def ground_truth(runs: Sequence[Run]) -> Iterator[Row]:
    for group, members in by_group(runs):
        logged = [run for run in members if run.of(ZkLogged)]
        for what, facts in (("transactions", _zxids), ("ISR updates", _isr_writes)):
            sums, missing = Counter[str](), Counter[str]()
            concerned = 0
            for run in logged:
                traced, written = facts(run)
                concerned += bool(traced | written)
                sums["in_both"] += len(traced & written)
                sums["only_traced"] += len(traced - written)
                sums["only_logged"] += len(written - traced)
                missing[run.key.run] += len(traced ^ written)
            if concerned:
                names = ("in_both", "only_traced", "only_logged")
                counts = {name: sums[name] for name in names}
                yield {
                    **group,
                    "what": what,
                    **counts,
                    "runs": concerned,
                    "worst_run": worst({**missing}),
                }


def _zxids(run: Run) -> tuple[set[Any], set[Any]]:
    traced = {event.zxid for event in run.of(e.ZkTransaction)}
    return traced, {event.zxid for event in run.of(ZkLogged)}


def _isr_writes(run: Run) -> tuple[set[Any], set[Any]]:
    traced = {(place(event), event.zk_version) for event in run.of(e.IsrUpdated)}
    ops = [op for event in run.of(ZkLogged) for op in event.zk_transaction_ops or (event,)]
    found = [(STATE.fullmatch(o.path or ""), o) for o in ops if o.op == "setData"]
    return traced, {((m[1], int(m[2])), o.version) for m, o in found if m}


TABLES: dict[str, Callable[[Sequence[Run]], Iterator[Row]]] = {
    made.__name__: made
    for made in (
        broker_load,
        cas_conflicts,
        ground_truth,
        hw_lag,
        isr_churn,
        isr_rates,
        leader_changes,
        metadata_arrivals,
        notifications,
        outcomes,
        partition_health,
        produce_availability,
        propagation_delay,
        stale_metadata,
        violations,
        zookeeper_load,
    )
}
