"""The policy of a guided search: what is kept, what is redrawn, and who is blamed."""

from emulator.kernel.rng import Choice, Stream
from emulator.search.guided.candidates import (
    BEFORE_US,
    HASTE,
    NOWHERE,
    PATIENCE,
    GroupHistory,
    Moment,
    back_from,
    party_of,
)

ASKED: list[Choice] = [
    (7, "broker-1", "zk_request"),
    (7, "broker-1/kafka-scheduler/isr-expiration", "resume_scheduler"),
    (7, "broker-2-fetcher-0", "net_request"),
    (7, "producer-1", "retry_jitter"),
]


def tried(**given: object) -> GroupHistory:
    known = {"segments": range(7, 8), "fixed": {}, "saved": None, "record": NOWHERE, **given}
    return GroupHistory(**known)  # type: ignore[arg-type]


def test_the_first_draw_is_all_anew() -> None:
    assert set(tried().next_candidate(Stream(1))) == {(7, "", "")}
    assert set(tried(segments=range(7, 9)).next_candidate(Stream(1))) == {(7, "", ""), (8, "", "")}


def test_what_was_good_after_other_legs_is_tried_first() -> None:
    saved = {(7, "", ""): 5, (7, "broker-1", ""): 6}
    assert tried(saved=saved).next_candidate(Stream(1)) == saved


def test_what_is_fixed_holds_in_every_draw() -> None:
    fixed = {(0, "broker-1", "boot.propagation"): 3}
    boot = tried(segments=range(1), fixed=fixed)
    stream = Stream(1)
    for _ in range(30):
        draw = boot.next_candidate(stream)
        assert draw.items() >= fixed.items()
        boot.learn(draw, (0, 1), "wrong", "broker-1", [*fixed, *ASKED])


def test_a_redraw_touches_one_party_and_mostly_the_one_that_is_blamed() -> None:
    group, stream = tried(), Stream(4)
    best = group.next_candidate(stream)
    group.learn(best, (7, 3), "wrong", "broker-1", ASKED)
    anew, parties = 0, []
    for _ in range(300):
        draw = group.next_candidate(stream)
        new = {key for key in draw if draw[key] != best.get(key)}
        if new == {(7, "", "")}:
            anew += 1
            continue
        assert new <= set(ASKED)
        (party,) = {party_of(actor) for _, actor, _ in new}
        parties.append(party)
    assert 50 < anew < 100
    assert set(parties) == {"broker-1", "broker-2", "producer-1"}
    assert parties.count("broker-1") > len(parties) / 2


def test_of_the_party_mostly_one_actor_one_purpose_or_some_streams_are_drawn_again() -> None:
    actors, purposes = [f"broker-1/thread-{n}" for n in range(4)], ["step", "thread", "reply"]
    asked: list[Choice] = [(7, actor, purpose) for actor in actors for purpose in purposes]
    group, stream = tried(), Stream(4)
    best = group.next_candidate(stream)
    group.learn(best, (7, 3), "wrong", "broker-1", asked)
    draws = [group.next_candidate(stream) for _ in range(400)]
    partial = [keys for draw in draws if (keys := [key for key in asked if key in draw])]
    of_one_actor = [keys for keys in partial if len({key[1] for key in keys}) == 1]
    of_one_purpose = [keys for keys in partial if len({key[2] for key in keys}) == 1]
    whole = [keys for keys in partial if keys == asked]
    for kind in (of_one_actor, of_one_purpose, whole):
        assert len(partial) / 6 < len(kind) < len(partial) / 2


def test_whom_the_actions_are_about_is_suspected() -> None:
    group, stream = tried(suspects=("broker-2",)), Stream(4)
    best = group.next_candidate(stream)
    group.learn(best, (7, 3), "wrong", "broker-0", ASKED)
    changed = [{key for key in group.next_candidate(stream) if key in ASKED} for _ in range(300)]
    parties = [party_of(actor) for keys in changed if keys for _, actor, _ in [min(keys)]]
    assert parties.count("broker-2") > 2 * parties.count("producer-1") > 0


def test_the_best_draw_is_the_one_after_which_the_run_came_furthest() -> None:
    group, stream = tried(), Stream(1)
    draws = [group.next_candidate(stream) for _ in range(3)]
    for draw, score in zip(draws, [(7, 9), (9, 2), (8, 40)], strict=True):
        group.learn(draw, score, score, "broker-1", ASKED)
    assert (group.best, group.best_score) == (draws[1], (9, 2))


def test_a_group_that_goes_wrong_in_one_way_only_is_left_early() -> None:
    one, several = tried(), tried()
    for n in range(HASTE):
        for group, wrong in ((one, "always this"), (several, n)):
            assert not group.is_exhausted
            group.learn(group.next_candidate(Stream(n)), (7, 1), wrong, "", ASKED)
    assert one.is_exhausted
    assert not several.is_exhausted
    for n in range(HASTE, PATIENCE):
        assert not several.is_exhausted
        several.learn(several.next_candidate(Stream(n)), (7, 1), n, "", ASKED)
    assert several.is_exhausted


def test_a_group_that_mostly_goes_wrong_in_one_way_is_left_sooner() -> None:
    group = tried()
    for n in range(3 * HASTE):
        assert not group.is_exhausted
        wrong = n if n % 9 == 0 else "always this"
        group.learn(group.next_candidate(Stream(n)), (7, 1), wrong, "", ASKED)
    assert group.is_exhausted


def test_a_group_is_not_left_while_it_gets_further() -> None:
    group = tried()
    for n in range(3 * PATIENCE):
        group.learn(
            group.next_candidate(Stream(n)), (7, n // (HASTE - 1)), "always this", "", ASKED
        )
        assert not group.is_exhausted


def test_a_long_search_is_patient() -> None:
    group = tried(patience=3 * PATIENCE)
    for n in range(3 * PATIENCE):
        assert not group.is_exhausted
        group.learn(group.next_candidate(Stream(n)), (7, 1), n, "", ASKED)


def test_a_group_that_once_went_better_is_left_early() -> None:
    group = tried(record=(7, 5))
    for n in range(3 * HASTE):
        group.learn(group.next_candidate(Stream(n)), (7, 4), n, "", ASKED)
    assert group.is_exhausted


def test_nothing_before_the_boot_can_be_blamed() -> None:
    boot = tried(segments=range(1))
    for n in range(3 * PATIENCE):
        boot.learn(boot.next_candidate(Stream(n)), (0, 1), "always this", "", ASKED)
    assert not boot.is_exhausted


def test_the_leg_before_is_blamed_first_and_all_of_them_when_that_was_in_vain() -> None:
    stream = Stream(1)
    assert {back_from(6, stream, failures=0) for _ in range(50)} == {5}
    assert {back_from(6, stream, failures=2) for _ in range(50)} == {4, 5}
    assert {back_from(6, stream, failures=9) for _ in range(200)} == {0, 1, 2, 3, 4, 5}
    assert back_from(0, stream, failures=0) == 0


def test_threads_and_connections_belong_to_their_process() -> None:
    assert party_of("broker-2/kafka-scheduler/isr-expiration") == "broker-2"
    assert party_of("broker-2-fetcher-0") == "broker-2"
    assert party_of("controller-3") == "broker-3"
    assert party_of("producer-1-produce") == "producer-1"
    assert party_of("zookeeper") == "zookeeper-"


def test_every_second_candidate_is_the_best_one_until_shortly_before_it_was_wrong() -> None:
    group, stream = tried(), Stream(4)
    best: dict[Choice, int] = {
        (6, "", "8000000"): 1,
        (7, "", ""): 2,
        (7, "broker-1", "net_request"): 3,
        (7, "", "9100000"): 4,
        (7, "broker-1@9100000", "net_request"): 5,
        (7, "", "9999900"): 6,
        (7, "broker-1@9999900", "net_request"): 7,
    }
    wrong_at = Moment(7, 9_000_000, 10_000_000)
    group.learn(best, (7, 3), "wrong", "broker-1", ASKED, wrong_at)
    late = []
    for _ in range(400):
        draw = group.next_candidate(stream)
        new = [key for key in draw if draw[key] != best.get(key)]
        if len(new) == 1 and not new[0][1] and new[0][2]:
            late.append((int(new[0][2]), draw))
    assert 80 < len(late) < 220
    for moment_us, draw in late:
        assert BEFORE_US[0] <= 10_000_000 - moment_us <= BEFORE_US[1]
        until_then = {
            key: best[key]
            for key in best
            if not ("9999900" in key[1] + key[2] and moment_us <= 9_999_900)
            and not ("9100000" in key[1] + key[2] and moment_us <= 9_100_000)
        }
        assert {**until_then, (7, "", str(moment_us)): draw[7, "", str(moment_us)]} == draw
    assert len({moment_us for moment_us, _ in late}) > 5


def test_a_contradiction_at_the_beginning_of_its_segment_leaves_nothing_to_keep() -> None:
    group, stream = tried(), Stream(4)
    group.learn({(7, "", ""): 2}, (7, 3), "wrong", "broker-1", ASKED, Moment(7, 900, 1100))
    for _ in range(50):
        assert not any(purpose.isdigit() for _, _, purpose in group.next_candidate(stream))


def test_a_group_with_a_race_that_was_lost_just_now_is_left_later() -> None:
    group, wrong_at = tried(), Moment(7, 9_000_000, 10_000_000)
    for n in range(3 * HASTE):
        assert not group.is_exhausted
        group.learn(group.next_candidate(Stream(n)), (7, 1), "always this", "", ASKED, wrong_at)
    assert group.is_exhausted


def test_with_another_target_the_best_candidate_is_tried_first_and_scored_anew() -> None:
    """Else no run that has to match more would ever be better than one that had not to."""
    group, best = tried(), {(7, "", ""): 5}
    group.learn(best, (9, 0, 0), "agrees", "", ASKED)
    group.begin_anew()
    assert group.next_candidate(Stream(1)) == best
    group.learn(best, (7, 3, 4), "wrong", "broker-1", ASKED)
    assert group.best_score == (7, 3, 4)
