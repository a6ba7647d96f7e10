"""Every statement that the specification makes of versions (sections 8 and 9) is held by a test, or
docs/limits.md says that it is not emulated.

The statements are read from the specification itself (docs/spec); the table here says
where each is held: a guard (test_9_chronology holds it against all versions, test_every_guard
shows what holds the guard), a test by its name, or `LIMITS`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from emulator.kafka.profiles.base import profiles
from emulator.kafka.profiles.guards.base import guards
from tests.spec.test_8_defaults import LINES
from tests.spec.test_9_chronology import REST

ROOT = Path(__file__).resolve().parents[2]
SPECIFICATION = ROOT / "docs" / "spec" / "kafka-control-plane.md"
LIMITS = "docs/limits.md"

HELD: dict[str, tuple[str, ...]] = {
    # 0.8.0
    "replication, ISR in ZooKeeper": (
        "test_2_3_a_leaders_write_is_one_plain_set_data_at_the_version_it_knows",
        "test_6_2_a_new_controller_has_the_next_epoch_and_tells_everybody",
        "test_6_11_a_broker_that_stops_gives_its_leaderships_away_before",
        "test_6_12_a_preferred_election_gives_leadership_back_to_the_first_replica",
        "test_6_13_a_partition_moves_and_what_it_left_is_deleted",
        "test_2_8_in_0_8_x_equal_contents_are_waited_for_and_different_ones_fail",
    ),
    # 0.8.1
    "controller retries sends for ever": (
        "test_6_10_a_send_thread_tries_for_ever_and_keeps_the_order",
        "test_6_14_a_topic_that_is_deleted_can_be_created_again",
        "test_6_12_leadership_goes_back_by_itself_when_the_timer_comes",
        "only-the-assigned-join",
    ),
    # 0.8.2
    "BADVERSION checker": ("own-write-recognised",),
    "controller epoch re-read at fail-over": ("epoch-only-from-election",),
    "shrunk ISR sent to all replicas": (
        "test_6_4_the_isr_without_a_broker_that_died_is_sent_to_all_live_replicas",
    ),
    "unclean election switch": (
        "test_6_7_who_enables_unclean_elections_for_a_topic_gets_one_at_once",
    ),
    "min.insync.replicas": ("test_3_6_below_the_minimum_isr_nothing_is_written_for_acks_all",),
    "log created even if leader unknown": (
        "test_4_3_of_a_leader_that_is_not_alive_only_the_log_is_made",
    ),
    "read–write partition lock": (
        "test_3_7_while_an_isr_write_waits_for_zookeeper_produces_of_that_partition_wait",
    ),
    # 0.9
    "ISR change notifications": ("isr-change-notifications",),
    "a controller that reads another's id": ("replaced-resigns",),
    "every broker hears of those that join or die": ("broker-list-announced",),
    "lag by time only": ("lag-by-time-only",),
    "broker ids from `/brokers/seqid`": ("broker ids from /brokers/seqid", LIMITS),
    "ephemeral owner check": ("own-ephemeral-checked",),
    "broker JSON v2": ("broker JSON v2 (KAFKA-1809)",),
    "fetch back-off": ("fetch back-off",),
    "/config generalised": ("/config generalised",),
    "tolerate newer broker JSON": (LIMITS,),
    # 0.10
    "broker JSON v3 with rack": ("test_librdkafka_reads_from_the_follower_in_its_rack",),
    "ordered fetch with response limit": (
        "response limit",
        "test_5_2_partitions_take_turns_when_an_answer_cannot_hold_all",
    ),
    "caught-up rule with previous fetch": (
        "caught-up-by-last-fetch",
        "hw-waits-for-caught-up",
        "caught-up-time-reset",
        "isr-expiration-at-half-lag",
    ),
    "UpdateMetadata before LeaderAndIsr at fail-over": ("update-metadata-first",),
    "StopReplica grouping": ("test_6_9_replicas_share_a_stop_replica_as_the_version_has_it",),
    "broker JSON v4, listeners": ("broker JSON v4, listeners (KIP-103)",),
    "controller resignation fixes": ("only-the-active-listens", LIMITS),
    # 0.11
    "batches that stand in the log as one": (
        "test_records_alone_are_as_many_and_have_as_many_bytes_as_their_batch",
    ),
    "leader-epoch truncation": ("truncation-by-epoch",),
    "single-threaded controller queue": ("single-threaded controller queue",),
    "broker list re-read on change": ("brokers-read-again",),
    "context reset on resignation": ("moves-forgotten-at-resignation", LIMITS),
    "controller metrics, FailedIsrUpdates": (LIMITS,),
    "unclean default false": ("unclean default false (KIP-106)",),
    # 1.0
    "log-dir failure handling": ("log-dirs-fail-alone", "LeaderAndIsr v1 isNew (KIP-112)"),
    "UnderMinIsr metrics": (LIMITS,),
    "unknown follower gets empty data": ("unassigned-fetch-is-empty",),
    # 1.1
    "asynchronous batched ZooKeeper client": ("asynchronous ZooKeeper client",),
    "notifications re-listed and purged at fail-over": ("notifications-read-again",),
    "session-expiry hand-shake": (
        "test_2_10_from_1_1_on_the_controller_resigns_before_there_is_a_new_session",
    ),
    "dynamic listeners, broker modification events": (LIMITS,),
    "fetch sessions": ("fetch sessions (KIP-227)",),
    "last ISR member always kept": ("last-isr-member-stays",),
    "Jackson JSON": (LIMITS,),
    "session hooks run outside the lock": ("callbacks-outside-the-lock",),
    # 2.0
    "truncation with leader's epoch in answer": ("truncation-in-rounds",),
    "unclean enable without controller change": (
        "test_6_7_who_enables_unclean_elections_for_a_topic_gets_one_at_once",
        LIMITS,
    ),
    "join ISR only past leader-epoch start": ("join-past-epoch-start",),
    "truncate after missed epochs": ("truncation-after-missed-epochs",),
    "epoch start recorded on becoming leader": ("epoch-start-recorded",),
    "out-of-range never fatal": ("out-of-range-not-fatal",),
    "batched auto rebalance": (LIMITS,),
    # 2.1
    "`/controller_epoch` fencing and atomic election": (
        "fenced-controller-writes",
        "atomic-election",
    ),
    "fetch fencing by leader epoch": ("fetch-fencing",),
    "no shrink when LEO equal": ("stay-at-log-end",),
    "LeaderAndIsr also to shutting-down brokers": ("shutting-down-are-told",),
    "lock-free metadata cache": (LIMITS,),
    # 2.2
    "broker epoch, bounce detection": ("broker-epochs",),
    "delete-and-recreate own stale ephemeral": ("stale-registration-replaced",),
    "small UpdateMetadata": ("small-update-metadata",),
    "control plane listener": (LIMITS,),
    "ElectPreferredLeaders RPC": ("ElectPreferredLeaders RPC (KIP-183)",),
    # 2.3
    "offline replicas handled at fail-over": ("offline-replicas-at-failover",),
    "failed partitions instead of dead threads": ("failed-partitions-leave",),
    "AtMinIsr": (LIMITS,),
    "StopReplica batching": (
        "test_6_9_up_to_2_5_a_stop_replica_deletes_all_of_its_partitions_or_none",
    ),
    # 2.4
    "reassignment API, topic JSON v2, LeaderAndIsr v3": (
        "reassignment API (KIP-455)",
        "topic JSON v2 (KIP-455)",
        "LeaderAndIsr v3 (KIP-455)",
    ),
    "ElectLeaders with unclean": ("ElectLeaders with unclean (KIP-460)",),
    "fetch from followers": ("fetch-from-followers",),
    "failed reads no longer reset follower state": ("failed-read-keeps-state",),
    "flexible control requests": ("flexible control requests",),
    "HW moved into the log": (LIMITS,),
    # 2.5
    "session 18 s, lag 30 s": ("lag 30 s", "session 18 s"),
    "ISR checks under read lock": ("isr-check-under-read-lock",),
    "ReassigningPartitions metric": (LIMITS,),
    # 2.6
    "leader epoch in StopReplica": ("stop-replica-epoch", "StopReplica v3 (KIP-570)"),
    "preferred election only if electable": ("preferred-only-if-electable",),
    "a topic's configuration read for new logs only": ("config-read-for-new-logs",),
    "no immediate fetch completion on HW change": ("hw-answers-no-fetch",),
    "error renamed NOT_LEADER_OR_FOLLOWER": (LIMITS,),
    # 2.7
    "AlterIsr (KIP-497": ("AlterIsr (KIP-497)", "maximal-isr"),
    "feature versioning, broker JSON v5": ("broker JSON v5 (KIP-584)", LIMITS),
    "Fetch v12": ("Fetch v12 (KIP-595)",),
    "controller event preemption": ("dropped-reassignment-calls-answered",),
    # 2.8
    "one ISR state machine for both paths": ("one-isr-state-machine",),
    "event-driven AlterIsr": ("event-driven-alter-isr",),
    "truncation on fetch": ("truncation-on-fetch",),
    "topic ids, topic JSON v3": (
        "LeaderAndIsr v5 (KIP-516)",
        "UpdateMetadata v7 (KIP-516)",
        LIMITS,
    ),
    "KRaft preview": (LIMITS,),
    "no follower state update on diverging epoch": ("diverging-fetch-not-counted",),
    # 3.x
    "HW re-evaluated after AlterIsr": ("hw-after-alter-isr",),
    "skip empty UpdateMetadata": ("every-death-is-told",),
    "AlterPartition v1, leader recovery state": ("AlterPartition v1 or later (KIP-704)", LIMITS),
    "3.2.1: retry fix": ("clear-before-callback",),
    "a follower truncates before it applies the high watermark": ("truncation-before-watermark",),
    "eligibility checks for ISR members": ("eligible-members",),
    "fetch from non-replica is an error": (LIMITS,),
    "KRaft production ready": (LIMITS,),
}
BEYOND = ("3.4", "3.5", "3.7", "3.9", "4.0")
"""Releases after the last version line."""

NOT_SETTINGS_HERE = {
    "replica.socket.receive.buffer.bytes",
    "zookeeper.sync.time.ms",
    "reserved.broker.max.id",
    "control.plane.listener.name",
    "inter.broker.protocol.version",
    "zookeeper.connection.timeout.ms",
}
"""The last has a test of its own; of the others docs/limits.md says what is not there."""


def rows(section: str) -> Iterator[tuple[str, str]]:
    """The first two cells of each row of a section's table."""
    text = SPECIFICATION.read_text(encoding="utf-8")
    body = text.split(f"\n## {section}. ", 1)[1].split("\n## ", 1)[0]
    for line in body.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("|") and len(cells) == 2 and not set(cells[0]) <= set("-"):
            yield cells[0], cells[1]


def plain(text: str) -> str:
    return re.sub(r"[`*]", "", text)


def test_9_every_statement_of_the_chronology_is_held_somewhere() -> None:
    known = {plain(beginning): beginning for beginning in HELD}
    met: set[str] = set()
    for release, statements in rows("9"):
        if release == "Release" or release in BEYOND:
            continue
        for statement in re.split(r"; ", plain(statements)):
            found = [known[text] for text in known if statement.startswith(text)]
            assert found, f"{release}: {statement}"
            met.update(found)
    assert met == set(HELD), "a statement that the specification does not make"


def test_8_every_setting_of_the_list_is_held_or_named() -> None:
    for names, _ in list(rows("8"))[1:]:
        first, *rest = names.split(" (")[0].split(" / ")
        begins = ".".join(first.split(".")[:2])
        for name in (first, *rest):
            full = {name, f"{begins}.{name}"}
            assert full & (LINES.keys() | NOT_SETTINGS_HERE), name


def names_of_tests() -> set[str]:
    files = (ROOT / "tests").rglob("test_*.py")
    return {name for f in files for name in re.findall(r"def (test_\w+)", f.read_text("utf-8"))}


def test_what_is_said_to_hold_a_statement_is_there() -> None:
    there = {LIMITS, *names_of_tests(), *guards(), *(text for _, text, _ in REST)}
    for beginning, held in HELD.items():
        assert held and set(held) <= there, beginning


def test_what_is_not_emulated_is_named_in_the_limits() -> None:
    limits = (ROOT / LIMITS).read_text("utf-8")
    missing = [
        text for text, held in HELD.items() if LIMITS in held and text.lower() not in limits.lower()
    ]
    assert not missing
    settings = NOT_SETTINGS_HERE - {"zookeeper.connection.timeout.ms"}
    assert all(f"`{name}`" in limits for name in settings)


def test_the_last_version_is_the_last_of_the_list() -> None:
    assert list(profiles().values())[-1].release.startswith("3.3")
