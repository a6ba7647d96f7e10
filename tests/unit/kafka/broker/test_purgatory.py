"""Delayed operations are completed once, by the first caller (DelayedOperation.scala@2.6.3)."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.kafka.broker.purgatory import DelayedOperation, Purgatory
from emulator.kernel.sync import Promise
from tests.interaction.playbook import Playbook, after_ms, thread


class Waits(DelayedOperation):
    """Says when it is completed; its condition is a flag, and may take its time to look at."""

    def __init__(self, play: Playbook, delay_ms: int = 1000, name: str = "it") -> None:
        super().__init__(delay_ms)
        self.play, self.name = play, name
        self.ready = False
        self.looks = 0
        self.gate: Promise[None] | None = None

    async def try_complete(self) -> bool:
        self.looks += 1
        ready = self.ready
        if self.gate is not None:
            await self.gate.wait()
        return await self.force_complete() if ready else False

    async def on_complete(self) -> None:
        self.play.say(f"{self.name} at {self.play.kernel.now // 1000}")

    async def on_expiration(self) -> None:
        self.play.say(f"{self.name} expired")


def parked(play: Playbook, purgatory: Purgatory, operation: Waits, *keys: str) -> None:
    play >> thread("park", purgatory.try_complete_else_watch(operation, keys or ("k",)))


def test_what_is_ready_already_is_completed_at_once_and_watched_nowhere() -> None:
    with Playbook() as play:
        purgatory, it = Purgatory(play.context, "Produce"), Waits(play)
        it.ready = True
        parked(play, purgatory, it)
        play << "it at 0" << "park: True"
        assert purgatory.watched("k") == 0


def test_it_is_looked_at_twice_before_it_is_left_alone() -> None:
    """The second look, after it can be found, closes the race with the condition coming true."""
    with Playbook() as play:
        purgatory, it = Purgatory(play.context, "Produce"), Waits(play)
        parked(play, purgatory, it)
        play << "park: False"
        assert (it.looks, purgatory.watched("k")) == (2, 1)


def test_a_condition_that_comes_true_between_the_looks_is_not_missed() -> None:
    with Playbook() as play:
        purgatory, it = Purgatory(play.context, "Produce"), Waits(play)
        it.gate = Promise(play.kernel)
        parked(play, purgatory, it)
        it.ready = True
        gate, it.gate = it.gate, None
        play >> (lambda _: gate.resolve(None)) << "it at 0" << "park: True"


def test_any_of_its_keys_completes_it_and_it_is_done_with_the_others() -> None:
    with Playbook() as play:
        purgatory, it = Purgatory(play.context, "Produce"), Waits(play)
        parked(play, purgatory, it, "a", "b")
        play << "park: False"
        it.ready = True
        play >> thread("b", purgatory.check_and_complete("b")) << "it at 0" << "b: 1"
        play >> thread("a", purgatory.check_and_complete("a")) << "a: 0"
        play >> after_ms(5000)


def test_time_completes_what_its_condition_does_not_and_once() -> None:
    with Playbook() as play:
        purgatory, it = Purgatory(play.context, "Produce"), Waits(play)
        parked(play, purgatory, it)
        play << "park: False" >> after_ms(999) >> after_ms(1) << "it at 1000" << "it expired"
        it.ready = True
        play >> thread("late", purgatory.check_and_complete("k")) << "late: 0"


def test_completion_calls_the_timer_off() -> None:
    with Playbook() as play:
        purgatory, it = Purgatory(play.context, "Produce"), Waits(play)
        parked(play, purgatory, it)
        play << "park: False"
        it.ready = True
        play >> after_ms(999) >> thread("check", purgatory.check_and_complete("k"))
        play << "it at 999" << "check: 1" >> after_ms(1000)


def test_expiry_in_the_middle_of_a_look_wins_and_the_look_completes_nothing() -> None:
    with Playbook() as play:
        purgatory, it = Purgatory(play.context, "Produce"), Waits(play)
        parked(play, purgatory, it)
        play << "park: False"
        it.ready, it.gate = True, Promise(play.kernel)
        gate = it.gate
        play >> after_ms(999) >> thread("check", purgatory.check_and_complete("k"))
        play >> after_ms(1) << "it at 1000" << "it expired"
        play >> (lambda _: gate.resolve(None)) << "check: 0"


def test_who_finds_another_thread_looking_leaves_word_to_look_again() -> None:
    with Playbook() as play:
        purgatory, it = Purgatory(play.context, "Produce"), Waits(play)
        parked(play, purgatory, it)
        play << "park: False"
        it.gate = Promise(play.kernel)
        gate = it.gate
        play >> thread("one", purgatory.check_and_complete("k"))
        it.ready = True
        play >> thread("two", purgatory.check_and_complete("k")) << "two: 0"
        it.gate = None
        play >> (lambda _: gate.resolve(None)) << "it at 0" << "one: 1"


def test_several_on_one_key_are_completed_in_the_order_of_their_coming() -> None:
    with Playbook() as play:
        purgatory = Purgatory(play.context, "Produce")
        first, second, third = (Waits(play, name=n) for n in ("first", "second", "third"))
        for it in (first, second, third):
            parked(play, purgatory, it)
            play << "park: False"
        first.ready = third.ready = True
        play >> thread("check", purgatory.check_and_complete("k"))
        play << "first at 0" << "third at 0" << "check: 2"
        assert purgatory.watched("k") == 1
        play >> after_ms(1000) << "second at 1000" << "second expired"


def test_what_is_parked_while_its_key_is_checked_is_not_lost() -> None:
    with Playbook() as play:
        purgatory, slow, late = Purgatory(play.context, "Produce"), Waits(play), Waits(play)
        slow.name, late.name = "slow", "late"
        parked(play, purgatory, slow)
        play << "park: False"
        slow.ready, slow.gate = True, Promise(play.kernel)
        gate = slow.gate
        play >> thread("check", purgatory.check_and_complete("k"))
        parked(play, purgatory, late)
        play << "park: False" >> (lambda _: gate.resolve(None)) << "slow at 0" << "check: 1"
        late.ready = True
        play >> thread("again", purgatory.check_and_complete("k")) << "late at 0" << "again: 1"


@settings(derandomize=True, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["ready", "check", "wait", "look slowly"]), st.integers(0, 500)),
        max_size=20,
    )
)
def test_whatever_happens_it_completes_once(steps: list[tuple[str, int]]) -> None:
    with Playbook() as play:
        purgatory, it = Purgatory(play.context, "Produce"), Waits(play)
        parked(play, purgatory, it)
        gates: list[Promise[None]] = []
        for step, ms in steps:
            if step == "ready":
                it.ready = True
            elif step == "look slowly":
                it.gate = Promise(play.kernel)
                gates.append(it.gate)
            elif step == "check":
                thread("check", purgatory.check_and_complete("k"))(play)
            play.kernel.run(play.kernel.now + ms * 1000)
        for gate in gates:
            gate.resolve(None)
        play.kernel.run(play.kernel.now + 2_000_000)
        assert [line.startswith("it at") for line in play.said].count(True) == 1
        play.forget()
