"""Section 9 of the spec: which release changed what.

Each statement is checked in the versions on either side of it; the behaviour itself is tested with
its own section (`test_2_by_version`, `test_3_by_version`, ...).
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from emulator.kafka.profiles.base import Profile, profiles
from emulator.kafka.profiles.guards.base import guards, number

GUARDS = [
    ("0.8.1", "ISR expansion only for assigned replicas (KAFKA-1097)", "only-the-assigned-join"),
    ("0.8.2", "BADVERSION checker (KAFKA-1382)", "own-write-recognised"),
    ("0.9", "ISR change notifications (KAFKA-1367)", "isr-change-notifications"),
    ("0.9", "lag by time only (KAFKA-1546)", "lag-by-time-only"),
    ("0.9", "ephemeral owner check", "own-ephemeral-checked"),
    ("0.9", "acks above 1 are refused (KAFKA-1697)", "acks-are-all-or-one"),
    ("0.9", "out of range keeps what both have (KAFKA-2143)", "log-in-range-kept"),
    ("0.10.2", "caught-up rule with previous fetch (KAFKA-4485)", "caught-up-by-last-fetch"),
    ("0.10.2", "HW waits for caught-up replicas (KAFKA-4485)", "hw-waits-for-caught-up"),
    ("0.10.2", "caught-up time reset on becoming leader (KAFKA-4485)", "caught-up-time-reset"),
    ("0.10.2", "shrink period halved (KAFKA-4485)", "isr-expiration-at-half-lag"),
    ("0.10.2", "UpdateMetadata before LeaderAndIsr (KAFKA-4443)", "update-metadata-first"),
    ("0.11", "leader-epoch truncation (KIP-101)", "truncation-by-epoch"),
    ("0.11", "broker list re-read on change (KAFKA-5502)", "brokers-read-again"),
    ("1.0", "log-dir failure handling (KIP-112)", "log-dirs-fail-alone"),
    ("1.0", "unknown follower gets empty data (KAFKA-5758)", "unassigned-fetch-is-empty"),
    ("1.1", "notifications re-listed and purged at fail-over", "notifications-read-again"),
    ("1.1", "last ISR member always kept", "last-isr-member-stays"),
    ("2.0", "truncation with leader's epoch in answer (KIP-279)", "truncation-in-rounds"),
    ("2.0.1", "join ISR only past leader-epoch start (KAFKA-7128)", "join-past-epoch-start"),
    ("2.0.1", "truncate after missed epochs (KAFKA-7164)", "truncation-after-missed-epochs"),
    ("2.0.1", "epoch start recorded on becoming leader (KAFKA-7415)", "epoch-start-recorded"),
    ("2.0.1", "out-of-range never fatal (KAFKA-7414)", "out-of-range-not-fatal"),
    ("2.1", "/controller_epoch fencing (KAFKA-6082)", "fenced-controller-writes"),
    ("2.1", "atomic election (KAFKA-6082)", "atomic-election"),
    ("2.1", "fetch fencing by leader epoch (KIP-320)", "fetch-fencing"),
    ("2.1", "no shrink when LEO equal (KAFKA-7152)", "stay-at-log-end"),
    ("2.2", "broker epoch, bounce detection (KIP-380)", "broker-epochs"),
    ("2.2", "delete-and-recreate own stale ephemeral", "stale-registration-replaced"),
    ("2.2", "small UpdateMetadata (KAFKA-7537)", "small-update-metadata"),
    ("2.3", "failed partitions instead of dead threads (KIP-461)", "failed-partitions-leave"),
    ("2.3", "offline replicas handled at fail-over", "offline-replicas-at-failover"),
    ("2.4", "failed reads no longer reset follower state", "failed-read-keeps-state"),
    ("2.5", "ISR checks under read lock (KAFKA-7538)", "isr-check-under-read-lock"),
    ("2.6", "leader epoch in StopReplica (KIP-570)", "stop-replica-epoch"),
    ("2.6", "no immediate fetch completion on HW change (KAFKA-9952)", "hw-answers-no-fetch"),
    ("2.6", "preferred election only if electable", "preferred-only-if-electable"),
    (
        "2.6",
        "a topic's configuration read for new logs only (KAFKA-9932)",
        "config-read-for-new-logs",
    ),
    (
        "2.7",
        "controller event preemption (KAFKA-10193)",
        "dropped-reassignment-calls-answered",
    ),
    ("2.8", "one ISR state machine for both paths", "one-isr-state-machine"),
    ("2.8", "event-driven AlterIsr", "event-driven-alter-isr"),
    ("2.7.2", "no follower state update on diverging epoch", "diverging-fetch-not-counted"),
    ("2.8", "truncation on fetch (KAFKA-10554)", "truncation-on-fetch"),
    ("3.1", "HW re-evaluated after AlterIsr (KAFKA-13091)", "hw-after-alter-isr"),
    ("3.2.1", "retry fix (KAFKA-14010)", "clear-before-callback"),
    ("3.3.3", "truncation before the high watermark (KAFKA-14704)", "truncation-before-watermark"),
    ("3.3", "eligibility checks for ISR members (KIP-841)", "eligible-members"),
]


def ids(statements: list[tuple[str, str, object]]) -> list[str]:
    return [f"{release}: {text}" for release, text, _ in statements]


@pytest.mark.parametrize(("release", "_", "guard"), GUARDS, ids=ids([*GUARDS]))
def test_9_a_version_has_what_its_release_or_an_earlier_one_mended(
    release: str, _: str, guard: str
) -> None:
    mended = guards()[guard]
    for profile in profiles().values():
        has = number(profile.release) >= number(release)
        before = mended.unneeded_before
        needless = bool(before) and number(profile.release) < number(before)
        assert (mended in profile.guards) is (has or needless), profile.name


def asks(request: str, version: int) -> Callable[[Profile], bool]:
    """The version's brokers send this request in this version, or a later one."""
    return lambda profile: profile.request_versions.get(request, -1) >= version


REST: list[tuple[str, str, Callable[[Profile], bool]]] = [
    ("0.9", "broker ids from /brokers/seqid", lambda p: p.has_znode("/brokers/seqid")),
    ("0.9", "/config generalised", lambda p: p.has_znode("/config/clients")),
    ("0.9", "notification node", lambda p: p.has_znode("/isr_change_notification")),
    ("0.9", "fetch back-off", lambda p: "replica.fetch.backoff.ms" in p.defaults),
    ("0.9", "broker JSON v2 (KAFKA-1809)", lambda p: p.registration_version >= 2),
    ("0.10.1", "send threads wait 100 ms", lambda p: p.send_backoff_ms == 100),
    ("0.10.2", "broker JSON v4, listeners (KIP-103)", lambda p: p.registration_version >= 4),
    ("2.4", "topic JSON v2 (KIP-455)", lambda p: p.topic_version >= 2),
    ("2.7", "broker JSON v5 (KIP-584)", lambda p: p.registration_version >= 5),
    ("0.10.1", "response limit", lambda p: "replica.fetch.response.max.bytes" in p.defaults),
    ("0.11", "single-threaded controller queue", lambda p: p.controller_threads == "event-queue"),
    (
        "0.11",
        "unclean default false (KIP-106)",
        lambda p: p.defaults["unclean.leader.election.enable"] == "false",
    ),
    ("0.11", "leader epochs are asked for (KIP-101)", asks("OffsetForLeaderEpoch", 0)),
    ("1.0", "log-dir failure handling", lambda p: p.has_znode("/log_dir_event_notification")),
    ("1.0", "LeaderAndIsr v1 isNew (KIP-112)", asks("LeaderAndIsr", 1)),
    ("1.1", "asynchronous ZooKeeper client", lambda p: p.zookeeper_client == "asynchronous"),
    (
        "1.1",
        "fetch sessions (KIP-227)",
        lambda p: p.values["max.incremental.fetch.session.cache.slots"] != "0",
    ),
    ("2.2", "ElectPreferredLeaders RPC (KIP-183)", asks("ElectLeaders", 0)),
    ("2.4", "flexible control requests", asks("LeaderAndIsr", 4)),
    ("2.4", "reassignment API (KIP-455)", asks("AlterPartitionReassignments", 0)),
    ("2.4", "LeaderAndIsr v3 (KIP-455)", asks("LeaderAndIsr", 3)),
    ("2.4", "ElectLeaders with unclean (KIP-460)", asks("ElectLeaders", 2)),
    ("2.5", "lag 30 s", lambda p: p.defaults["replica.lag.time.max.ms"] == "30000"),
    ("2.5", "session 18 s", lambda p: p.defaults["zookeeper.session.timeout.ms"] == "18000"),
    ("2.6", "StopReplica v3 (KIP-570)", asks("StopReplica", 3)),
    ("2.7", "AlterIsr (KIP-497)", lambda p: p.propagation == "rpc"),
    ("2.7", "Fetch v12 (KIP-595)", asks("Fetch", 12)),
    ("2.8", "LeaderAndIsr v5 (KIP-516)", asks("LeaderAndIsr", 5)),
    ("2.8", "UpdateMetadata v7 (KIP-516)", asks("UpdateMetadata", 7)),
    ("3.2", "AlterPartition v1 or later (KIP-704)", asks("AlterIsr", 1)),
]


@pytest.mark.parametrize(("release", "_", "has"), REST, ids=ids([*REST]))
def test_9_a_version_is_as_its_release_or_an_earlier_one_made_it(
    release: str, _: str, has: Callable[[Profile], bool]
) -> None:
    for profile in profiles().values():
        assert has(profile) is (number(profile.release) >= number(release)), profile.name
