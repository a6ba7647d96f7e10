"""Every guard has a test that fails when the guard is off: here they are, and here that is tried.

Most are the cure of a hazard of the catalogue, where nothing may break with it; the others have
a test of what a version with it does.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec
import pytest

from emulator.hazards.entry import Entry, catalogue
from emulator.hazards.reproduce import play_side_in_memory
from emulator.kafka.profiles.base import Profile, profiles
from emulator.kafka.profiles.guards.base import Guard, guards

HELD_BY = {
    "unknown-partitions-refused": "test_4_by_version:"
    "test_4_6_from_0_10_1_a_leader_refuses_what_its_metadata_cache_does_not_have",
    "known-by-partition": "test_4_by_version:"
    "test_4_6_up_to_1_1_the_metadata_cache_is_asked_about_topics",
    "unassigned-fetch-is-empty": "test_5_by_version:"
    "test_5_3_up_to_0_11_a_fetch_fails_as_a_whole_if_one_replica_is_not_assigned",
    "config-read-for-new-logs": "test_2_by_version:"
    "test_3_8_up_to_2_5_a_restarted_broker_reads_the_configuration_of_each_log_again",
    "fetches-read-under-lock": "test_3_by_version:"
    "test_3_3_up_to_2_0_a_delayed_fetch_is_answered_while_the_isr_is_written",
    "new-follower-answers": "test_4_by_version:"
    "test_4_3_up_to_0_9_a_deposed_leader_leaves_waiting_requests_to_their_timeout",
    "preferred-only-where-needed": "test_6_commands:"
    "test_6_12_from_1_1_to_2_1_a_preferred_leader_is_elected_again",
    "send-thread-shutdown-ends-request": "test_6_by_version:"
    "test_6_10_from_0_10_2_to_1_1_a_request_to_a_paused_broker_delays_its_fail_over",
    "removed-replicas-not-sent-roles": "test_6_commands:"
    "test_6_13_up_to_2_3_a_removed_replica_hears_of_the_last_leader_epoch",
    "moving-replicas-in-order": "test_6_commands:"
    "test_6_13_up_to_2_3_the_replicas_of_a_move_are_a_set",
    "session-epochs-kept": "test_5_by_version:"
    "test_5_3_up_to_2_4_only_the_first_fetch_of_a_session_is_fenced",
    "existing-topics-known": "test_6_commands:"
    "test_2_12_up_to_2_3_zookeeper_is_asked_whether_a_new_topic_exists",
    "disabled-deletion-is-an-error": "test_6_commands:"
    "test_6_14_up_to_2_0_a_disabled_deletion_times_out",
    "live-members-proposed": "test_7_by_version:"
    "test_7_1_from_3_3_on_a_leader_proposes_no_follower_that_its_metadata_does_not_list",
    "one-back-off": "test_5_by_version:test_5_5_from_3_1_on_a_broken_connection_costs_one_back_off",
    "range-before-divergence": "test_5_by_version:"
    "test_5_4_a_fetch_from_before_the_log_start_is_out_of_range_though_the_logs_diverge",
    "offsets-behind-election-hidden": "test_4_by_version:"
    "test_4_6_until_a_new_leader_has_committed_a_record_it_hides_the_end_from_consumers",
    "moves-to-dead-brokers-begin": "test_6_commands:"
    "test_6_13_up_to_0_10_0_a_command_that_names_a_dead_broker_is_dropped",
    "closed-connections-noticed": "test_5_by_version:"
    "test_5_1_in_0_9_a_fetch_is_lost_on_a_connection_that_the_leader_has_closed",
    "all-offline-leaders-are-replaced": "test_6_by_version:"
    "test_6_4_up_to_0_10_the_death_of_one_broker_does_not_depose_another_that_is_shutting_down",
    "broker-list-announced": "test_6_by_version:"
    "test_6_4_up_to_0_8_2_only_a_broker_that_joins_gets_the_first_update_metadata",
    "requests-outlive-connections": "test_6_by_version:"
    "test_6_10_in_0_9_what_was_sent_to_a_paused_broker_is_lost_with_the_connection",
    "own-controller-znode-kept": "test_2_by_version:"
    "test_2_10_up_to_0_10_a_broker_registers_when_its_controller_has_been_elected",
    "acks-are-all-or-one": "test_4_by_version:test_3_6_acks_above_1_existed_only_in_0_8_x",
    "command-read-before-removal": "test_6_commands:"
    "test_6_13_from_1_1_to_2_3_a_completed_move_is_taken_out_of_a_command_that_nobody_reads",
    "command-written-if-changed": "test_6_commands:"
    "test_6_2_from_2_0_to_2_3_a_new_controller_without_moves_deletes_their_command",
    "deletion-markers-cleared": "test_6_commands:"
    "test_6_14_in_0_9_where_deletion_is_disabled_a_marker_stays",
    "dead-replicas-are-ineligible": "test_6_commands:"
    "test_6_14_up_to_2_2_a_dead_replica_of_a_deleted_topic_stays_offline",
    "only-a-moving-topic-refuses-partitions": "test_6_commands:"
    "test_6_13_up_to_2_3_no_topic_gets_partitions_while_a_command_stands",
    "topic-ids-read": "test_6_commands:"
    "test_2_12_from_2_8_on_a_broker_reads_the_id_of_a_topic_that_it_creates_or_enlarges",
    "deletion-checked-at-creation": "test_6_commands:"
    "test_2_12_from_3_1_on_a_topic_is_not_created_while_it_is_marked_for_deletion",
    "new-brokers-not-sent-deletions": "test_6_commands:"
    "test_6_4_from_2_7_on_a_broker_that_joins_first_hears_nothing_of_deletions",
    "deletions-sent-once": "test_6_by_version:"
    "test_6_9_up_to_1_1_every_update_metadata_names_what_is_to_be_deleted",
    "directories-flushed": "test_4_by_version:"
    "test_up_to_2_8_a_flushed_segment_may_be_missing_after_a_crash_of_the_machine",
    "fetcher-shutdown-ends-fetch": "test_5_by_version:"
    "test_5_1_up_to_1_0_the_end_of_a_fetcher_thread_waits_for_its_fetch",
    "failed-partitions-leave": "test_5_by_version:test_5_5_what_a_storage_error_does_to_a_fetcher",
    "hw-answers-no-fetch": "test_4_by_version:"
    "test_3_5_in_2_4_and_2_5_a_new_high_watermark_answers_a_followers_fetch_that_waits",
    "fetch-from-followers": "test_4_by_version:"
    "test_4_6_from_2_4_on_a_leader_may_send_a_consumer_to_the_replica_in_its_rack",
    "preferred-replica-at-once": "test_4_by_version:"
    "test_4_6_before_3_3_the_answer_that_names_the_replica_waits",
    "preferred-replica-in-isr": "test_4_by_version:"
    "test_4_6_from_3_3_2_on_only_isr_members_are_preferred",
    "follower-hw-completes-fetches": "test_4_by_version:"
    "test_4_6_before_3_3_2_a_fetch_that_waits_at_a_follower_does_not_see_its_high_watermark_advance",
    "stopped-replica-answers": "test_4_by_version:"
    "test_4_4_up_to_2_3_a_removed_leader_leaves_waiting_requests_to_their_timeout",
    "dropped-reassignment-calls-answered": "test_2_by_version:"
    "test_2_10_up_to_2_6_a_controller_that_expires_answers_no_reassignment_call",
    "log-dirs-fail-alone": "test_5_by_version:test_5_5_what_a_storage_error_does_to_a_fetcher",
    "log-in-range-kept": "test_5_by_version:"
    "test_5_5_in_0_8_2_whoever_is_out_of_range_of_a_longer_leader_drops_its_whole_log",
    "out-of-range-not-fatal": "test_5_by_version:"
    "test_5_5_from_0_8_2_to_2_0_0_a_shorter_leader_stops_a_broker_unless_it_may_elect_uncleanly",
    "log-start-followed": "test_5_by_version:"
    "test_5_4_from_0_11_on_a_follower_starts_where_its_leader_does_and_says_so",
    "truncation-on-fetch": "test_5_by_version:"
    "test_5_4_from_2_8_on_a_follower_fetches_at_once_and_says_its_last_epoch",
    "truncation-before-watermark": "test_5_by_version:"
    "test_5_4_up_to_3_3_2_the_high_watermark_is_applied_before_the_log_is_truncated",
    "diverging-fetch-not-counted": "test_5_by_version:test_3_2_a_diverging_fetch_is_no_progress",
    "small-update-metadata": "test_6_by_version:"
    "test_6_9_up_to_2_1_an_update_metadata_without_partitions_meant_all_of_them",
    "offsets-expire-with-group": "test_4_by_version:"
    "test_up_to_2_0_offsets_expire_under_the_members_of_their_group",
    "unknown-producers-accepted": "test_4_by_version:"
    "test_up_to_2_4_a_producer_that_the_log_does_not_know_must_begin_at_0",
    "added-replicas-are-new": "test_6_commands:"
    "test_6_13_from_2_7_on_a_broker_that_is_added_hears_at_once_that_its_replica_is_new",
    "added-replicas-go-online-together": "test_6_commands:"
    "test_6_13_up_to_2_3_every_replica_of_the_target_goes_online_by_itself",
    "command-listed-before-deletion": "test_6_commands:"
    "test_6_13_from_2_4_on_a_command_is_listed_before_it_is_deleted",
    "command-read-after-start-up": "test_6_commands:"
    "test_6_2_up_to_2_3_a_new_controller_reads_the_command_of_moves_with_its_context",
    "move-written-before-it-is-checked": "test_6_commands:"
    "test_6_13_up_to_2_3_a_move_is_checked_before_it_is_written",
    "brokers-read-again": "test_6_by_version:"
    "test_6_4_up_to_0_10_2_the_brokers_of_the_event_are_read_not_those_of_now",
    "caught-up-time-reset": "test_3_by_version:"
    "test_3_8_before_0_10_2_a_new_leaders_first_pass_may_expel_everybody",
    "controller-asked-for-versions": "test_7_by_version:"
    "test_7_2_up_to_2_7_a_controller_that_does_not_know_the_request_closes_the_connection",
    "epoch-start-recorded": "test_5_by_version:"
    "test_3_8_up_to_2_0_0_a_leader_knows_its_epoch_only_with_its_first_record",
    "event-driven-alter-isr": "test_7_by_version:"
    "test_7_2_from_2_8_on_a_proposal_is_sent_when_it_is_made",
    "failed-read-keeps-state": "test_3_by_version:"
    "test_3_2_before_2_4_a_failed_read_sets_the_followers_leo_to_minus_one",
    "hw-waits-for-caught-up": "test_3_by_version:"
    "test_3_5_before_0_10_2_the_high_watermark_counts_the_isr_alone",
    "isr-change-notifications": "test_3_by_version:"
    "test_4_2_in_0_8_2_nobody_is_told_of_an_isr_change",
    "isr-check-under-read-lock": "test_3_by_version:"
    "test_3_3_up_to_2_4_a_shrink_pass_takes_the_write_lock_at_once",
    "isr-expiration-at-half-lag": "test_3_by_version:"
    "test_4_1_isr_expiration_runs_every_lag_time_before_0_10_2",
    "maximal-isr": "test_7_by_version:"
    "test_7_1_a_replica_that_is_to_join_holds_the_high_watermark_at_once",
    "offline-replicas-at-failover": "test_6_by_version:"
    "test_6_2_up_to_2_2_a_new_controller_leaves_dead_followers_in_the_isr",
    "one-isr-state-machine": "test_7_by_version:"
    "test_7_6_from_2_8_on_a_write_that_fails_leaves_the_partition_pending",
    "own-ephemeral-checked": "test_2_by_version:"
    "test_2_12_from_0_9_to_1_0_its_parents_are_created_first",
    "preferred-only-if-electable": "test_6_by_version:"
    "test_6_12_up_to_2_5_a_preferred_replica_out_of_the_isr_is_asked_for_all_the_same",
    "stop-replica-epoch": "test_6_by_version:"
    "test_6_9_from_2_6_on_stop_replica_carries_the_leader_epoch",
    "truncation-after-missed-epochs": "test_5_by_version:"
    "test_3_9_up_to_2_0_0_a_later_epoch_of_the_same_leader_truncates_nothing",
    "truncation-in-rounds": "test_5_by_version:test_5_4_up_to_1_1_there_is_one_round_of_truncation",
    "equal-version-is-success": "test_7_by_version:"
    "test_7_5_a_success_with_the_version_that_the_leader_has_means_it_is_so_already",
    "ahead-of-the-controller": "test_7_by_version:"
    "test_7_4_from_3_3_on_who_knows_more_than_the_controller_is_told_to_look_for_another",
    "replaced-resigns": "test_2_by_version:"
    "test_2_7_up_to_0_8_2_a_controller_that_finds_another_in_its_place_goes_on",
}


def cured_by(guard: str) -> list[Entry]:
    return [entry for entry in catalogue().values() if f"{guard}=on" in entry.cure.words]


def test_every_guard_is_a_cure_or_is_held_by_a_test() -> None:
    without = [name for name in guards() if not cured_by(name) and name not in HELD_BY]
    assert without == []
    assert set(HELD_BY) <= set(guards())


def gone(guard: Guard, monkeypatch: pytest.MonkeyPatch) -> None:
    """No version has it, whatever a scenario says."""
    as_it_is = Profile.altered

    def altered(self: Profile, switches: Mapping[str, bool], propagation: str = "") -> Profile:
        return less(as_it_is(self, switches, propagation))

    def less(profile: Profile) -> Profile:
        return msgspec.structs.replace(profile, guards=profile.guards - {guard})

    monkeypatch.setattr(Profile, "altered", altered)
    for name, profile in profiles().items():
        monkeypatch.setitem(profiles(), name, less(profile))


def cases(test: Any) -> Iterator[dict[str, Any]]:
    """The parameters of a parametrised test."""
    (mark,) = [one for one in getattr(test, "pytestmark", ()) if one.name == "parametrize"] or [0]
    if not mark:
        yield {}
        return
    names, values = mark.args
    listed = names.split(", ") if isinstance(names, str) else list(names)
    for case in values:
        yield dict(zip(listed, case if len(listed) > 1 else (case,), strict=True))


def passes(test: Callable[..., None]) -> bool:
    try:
        for case in cases(test):
            test(**case)
    except AssertionError:
        return False
    return True


@pytest.mark.slow
@pytest.mark.parametrize("guard", sorted(set(guards()) - set(HELD_BY)))
def test_the_hazard_that_it_cures_happens_without_it(
    guard: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone(guards()[guard], monkeypatch)
    assert not any(
        play_side_in_memory(entry, cured=True).is_as_expected for entry in cured_by(guard)
    )


@pytest.mark.slow
@pytest.mark.parametrize("guard", sorted(HELD_BY))
def test_who_holds_it_fails_without_it(guard: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module, _, name = HELD_BY[guard].partition(":")
    test = getattr(importlib.import_module(f"tests.spec.{module}"), name)
    assert inspect.isfunction(test)
    gone(guards()[guard], monkeypatch)
    assert not passes(test)
