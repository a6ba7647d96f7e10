"""Tasks, time, processes and lanes."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from emulator.kernel.scheduler import BASE_MS, TaskFailed
from emulator.kernel.sync import Promise, Queue
from emulator.trace import events
from tests.unit.kernel.stage import FixedWakeUp, Stage

properties = settings(derandomize=True, deadline=None)


# -- order and time --------------------------------------------------------------------------------


def test_what_is_ready_goes_first_come_first_served() -> None:
    with Stage() as stage:
        for name in ("a", "b", "c"):
            stage.spawn(name, stage.says(name))
        assert stage.run() == ["a", "b", "c"]


def test_between_two_awaits_nothing_else_runs() -> None:
    with Stage() as stage:

        async def body(name: str) -> None:
            for n in range(3):
                stage.say(f"{name}{n}")

        stage.spawn("a", body("a"))
        stage.spawn("b", body("b"))
        assert stage.run() == ["a0", "a1", "a2", "b0", "b1", "b2"]


def test_time_jumps_to_what_is_next_and_equal_times_keep_the_order_of_scheduling() -> None:
    with Stage() as stage:

        async def body(name: str, us: int) -> None:
            await stage.kernel.sleep(us)
            stage.say(f"{stage.kernel.now} {name}")

        for name, us in (("a", 300), ("b", 100), ("c", 300), ("d", 200)):
            stage.spawn(name, body(name, us))
        assert stage.run() == ["100 b", "200 d", "300 a", "300 c"]


@properties
@given(st.lists(st.integers(0, 20), max_size=12))
def test_sleepers_wake_in_order_of_time_and_of_their_coming(pauses: list[int]) -> None:
    with Stage() as stage:

        async def body(number: int, us: int) -> None:
            await stage.kernel.sleep(us)
            stage.say(f"{us} {number}")

        for number, us in enumerate(pauses):
            stage.spawn(f"t{number}", body(number, us))
        expected = sorted((us, number) for number, us in enumerate(pauses))
        assert stage.run() == [f"{us} {number}" for us, number in expected]


def test_sleep_until_a_moment_that_has_passed_returns_at_once() -> None:
    with Stage() as stage:

        async def body() -> None:
            await stage.kernel.sleep(100)
            await stage.kernel.sleep_until(100)
            await stage.kernel.sleep_until(50)
            stage.say(str(stage.kernel.now))

        stage.spawn("a", body())
        assert stage.run() == ["100"]


def test_run_stops_at_the_moment_that_was_given_with_all_that_is_due_then_done() -> None:
    with Stage() as stage:

        async def body() -> None:
            for _ in range(3):
                await stage.kernel.sleep(100)
                stage.say(str(stage.kernel.now))

        stage.spawn("a", body())
        assert stage.run(until_us=200) == ["100", "200"]
        assert stage.kernel.now == 200
        assert stage.run(until_us=250) == []
        assert stage.kernel.now == 250
        assert stage.run() == ["300"]


def test_kafkas_clock_begins_far_from_zero() -> None:
    with Stage() as stage:
        assert stage.kernel.now_ms() == BASE_MS
        stage.run(until_us=2_999)
        assert stage.kernel.now_ms() == BASE_MS + 2


def test_stop_ends_the_run_after_the_present_step() -> None:
    with Stage() as stage:

        async def body() -> None:
            stage.kernel.stop()
            stage.say("first")
            await stage.kernel.sleep(0)
            await stage.kernel.sleep(1)
            stage.say("second")

        stage.spawn("a", body())
        assert stage.run() == ["first"]
        assert stage.run() == ["second"]


def test_an_exception_that_nobody_caught_stops_the_run_and_names_the_thread() -> None:
    with Stage() as stage:

        async def body() -> None:
            raise KeyError("x")

        stage.spawn("a", body())
        with pytest.raises(TaskFailed, match="p/a: KeyError: 'x'"):
            stage.run()


def test_stopping_a_task_runs_its_finally_clauses_and_nothing_more_of_it() -> None:
    with Stage() as stage:

        async def body() -> None:
            try:
                await stage.kernel.sleep(1000)
                stage.say("never")
            finally:
                stage.say("finally")

        task = stage.spawn("a", body())
        assert stage.run(until_us=10) == []
        task.stop()
        task.stop()
        assert stage.run() == ["finally"]


def test_a_checkpoint_is_free_unless_somebody_asks_for_it() -> None:
    with Stage() as stage:

        async def body() -> None:
            for _ in range(2):
                await stage.kernel.checkpoint("here")
                stage.say(f"passed at {stage.kernel.now}")
                await stage.kernel.sleep(5)

        stage.spawn("a", body())
        assert stage.run(until_us=0) == ["passed at 0"]
        stage.kernel.checkpoints["here"] = lambda task: stage.kernel.sleep(100)
        assert stage.run() == ["passed at 105"]


def test_only_a_task_can_block() -> None:
    with Stage() as stage:
        lane = stage.process.lane("lane")
        lane.post(stage.kernel.this_task)
        with pytest.raises(AssertionError, match="only a task can block"):
            stage.run()


# -- processes -------------------------------------------------------------------------------------


def test_a_paused_process_runs_nothing_and_resumed_it_runs_what_fell_due_once() -> None:
    with Stage() as stage:
        stage.spawn("a", stage.says("a1", "a2", pause_us=100))
        stage.spawn("b", stage.says("b1", "b2", pause_us=150))
        assert stage.run(until_us=50) == ["a1", "b1"]
        stage.process.pause()
        assert stage.run(until_us=1000) == []
        stage.process.resume()
        assert stage.run() == ["a2", "b2"]


def test_others_run_on_while_one_process_stands_still() -> None:
    with Stage() as stage:
        other = stage.kernel.process("q")
        stage.spawn("a", stage.says("a1", "a2", pause_us=100))
        stage.spawn("b", stage.says("b1", "b2", pause_us=100), other)
        stage.run(until_us=50)
        stage.process.pause()
        assert stage.run(until_us=500) == ["b2"]


def test_what_was_ready_already_waits_too_when_the_process_is_paused() -> None:
    with Stage() as stage:
        other = stage.kernel.process("q")

        async def pauses() -> None:
            stage.process.pause()

        stage.spawn("b", pauses(), other)
        stage.spawn("a", stage.says("a"))
        assert stage.run() == []
        stage.process.resume()
        assert stage.run() == ["a"]


def test_a_timer_that_is_not_due_yet_keeps_its_moment_over_a_pause() -> None:
    with Stage() as stage:
        stage.spawn("a", stage.says("now", "then", pause_us=1000))
        stage.run(until_us=100)
        stage.process.pause()
        stage.run(until_us=400)
        stage.process.resume()
        assert stage.run(until_us=999) == []
        assert stage.run(until_us=1000) == ["then"]


def test_pausing_twice_and_resuming_what_runs_change_nothing() -> None:
    with Stage() as stage:
        stage.process.resume()
        stage.process.pause()
        stage.process.pause()
        stage.spawn("a", stage.says("a"))
        assert stage.run() == []
        stage.process.resume()
        stage.process.resume()
        assert stage.run() == ["a"]


def test_a_resumed_process_is_told_how_much_has_waited_but_not_what_was_called_off() -> None:
    wake_up = FixedWakeUp(0)
    with Stage(wake_up) as stage:
        stage.process.pause()
        lane = stage.process.lane("socket")
        requests = [lane.call_at(at_us, partial(stage.say, str(at_us))) for at_us in (5, 6, 7)]
        requests[1].cancel()
        stage.run(10)
        stage.process.resume()
        assert stage.run() == ["5", "7"]
    assert wake_up.waited == [2]


def test_after_a_resume_each_thread_wakes_after_its_drawn_delay_in_its_own_order() -> None:
    wake_up = FixedWakeUp(10_000, quick=50, slow=900)
    with Stage(wake_up) as stage:
        slow, quick = stage.process.lane("slow"), stage.process.lane("quick")
        stage.process.pause()
        for n in range(3):
            slow.post(lambda n=n: stage.say(f"slow{n} at {stage.kernel.now}"))
            quick.post(lambda n=n: stage.say(f"quick{n} at {stage.kernel.now}"))
        stage.run(until_us=1000)
        stage.process.resume()
        assert stage.run() == [
            "quick0 at 1050",
            "quick1 at 1050",
            "quick2 at 1050",
            "slow0 at 1900",
            "slow1 at 1900",
            "slow2 at 1900",
        ]


@pytest.mark.parametrize("due_us", [1_040, 1_100, 1_200])
def test_what_falls_due_after_a_resume_does_not_overtake_what_its_lane_was_given_before(
    due_us: int,
) -> None:
    """The lane wakes at 1,250; the process is sluggish until 1,050."""
    with Stage(wake_up=FixedWakeUp(50, lane=250)) as stage:
        lane = stage.process.lane("lane")
        stage.process.pause()
        lane.post(lambda: stage.say("first"))
        stage.run(1_000)
        stage.process.resume()
        lane.call_at(due_us, lambda: stage.say("second"))
        assert stage.run() == ["first", "second"]


def test_what_becomes_ready_shortly_after_a_resume_does_not_overtake_its_own_thread() -> None:
    wake_up = FixedWakeUp(10_000, slow=900)
    with Stage(wake_up) as stage:
        slow = stage.process.lane("slow")
        stage.process.pause()
        slow.post(lambda: stage.say(f"held at {stage.kernel.now}"))
        stage.process.resume()
        slow.post(lambda: stage.say(f"fresh at {stage.kernel.now}"))
        assert stage.run() == ["held at 900", "fresh at 900"]


def test_after_the_window_everything_is_prompt_again() -> None:
    with Stage(FixedWakeUp(500, slow=400)) as stage:
        slow = stage.process.lane("slow")
        stage.process.pause()
        stage.process.resume()
        stage.run(until_us=500)
        slow.post(lambda: stage.say(f"at {stage.kernel.now}"))
        assert stage.run() == ["at 500"]


def test_a_crash_runs_no_finally_and_forgets_what_was_held() -> None:
    with Stage() as stage:

        async def body() -> None:
            try:
                await stage.kernel.sleep(100)
                stage.say("never")
            finally:
                stage.say("finally")

        stage.spawn("a", body())
        stage.run(until_us=10)
        stage.process.pause()
        stage.run(until_us=200)
        stage.process.crash()
        stage.process.resume()
        assert stage.run() == []
        assert stage.process.state == "dead"


def test_a_dead_process_takes_nothing_any_more() -> None:
    with Stage() as stage:
        lane = stage.process.lane("lane")
        stage.process.crash()
        lane.post(lambda: stage.say("posted"))
        lane.call_later(5, lambda: stage.say("later"))
        assert stage.run() == []


def test_a_crash_takes_a_waiter_away_and_its_promise_may_still_be_resolved() -> None:
    with Stage() as stage:
        promise: Promise[str] = Promise(stage.kernel)

        async def body() -> None:
            stage.say(await promise.wait())

        stage.spawn("a", body())
        stage.run()
        stage.process.crash()
        promise.resolve("late")
        assert stage.run() == []


# -- lanes -----------------------------------------------------------------------------------------


def test_a_lane_runs_what_was_posted_in_order_and_timers_when_they_are_due() -> None:
    with Stage() as stage:
        lane = stage.process.lane("lane")
        lane.call_later(20, lambda: stage.say("later"))
        lane.call_at(10, lambda: stage.say("at 10"))
        lane.call_at(-5, lambda: stage.say("long ago"))
        lane.post(lambda: stage.say("posted"))
        assert stage.run() == ["posted", "long ago", "at 10", "later"]


def test_a_timer_that_was_called_off_does_not_come() -> None:
    with Stage() as stage:
        lane = stage.process.lane("lane")
        lane.call_later(20, lambda: stage.say("kept"))
        lane.call_later(10, lambda: stage.say("gone")).cancel()
        assert stage.run() == ["kept"]


# -- the trace -------------------------------------------------------------------------------------


def starting(stage: Stage, profile: str) -> None:
    stage.kernel.emit(events.BrokerStarting, 1, profile)


def test_an_event_knows_its_thread_its_time_and_its_cause() -> None:
    with Stage() as stage:

        async def body() -> None:
            starting(stage, "one")
            await stage.kernel.sleep(30)
            starting(stage, "two")

        stage.spawn("a", body())
        stage.run()
        assert [(e.seq, e.t, e.thread, e.cause, e.profile) for e in stage.sink.events] == [
            (0, 0, "a", -1, "one"),
            (1, 30, "a", 0, "two"),
        ]


def test_a_thread_that_is_spawned_or_a_call_that_is_posted_inherits_the_cause() -> None:
    with Stage() as stage:

        async def child() -> None:
            starting(stage, "child")

        async def body() -> None:
            starting(stage, "parent")
            stage.process.spawn("child", child())
            stage.process.lane("lane").post(lambda: starting(stage, "posted"))
            stage.process.lane("lane").call_later(9, lambda: starting(stage, "later"))

        stage.spawn("parent", body())
        stage.run()
        assert [(e.profile, e.cause) for e in stage.sink.events] == [
            ("parent", -1),
            ("child", 0),
            ("posted", 0),
            ("later", 0),
        ]


def test_threads_do_not_mix_their_causes() -> None:
    with Stage() as stage:

        async def body(name: str) -> None:
            for n in range(2):
                starting(stage, f"{name}{n}")
                await stage.kernel.sleep(10)

        stage.spawn("a", body("a"))
        stage.spawn("b", body("b"))
        stage.run()
        causes = {e.profile: e.cause for e in stage.sink.events}
        assert causes == {"a0": -1, "b0": -1, "a1": 0, "b1": 1}


@properties
@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 9)), max_size=20))
def test_the_same_program_makes_the_same_trace(plan: list[tuple[str, int]]) -> None:
    def trace() -> list[tuple[int, str]]:
        with Stage() as stage:
            queue: Queue[int] = Queue(stage.kernel)

            async def puts(us: int) -> None:
                await stage.kernel.sleep(us)
                queue.put(us)

            async def takes(name: str) -> None:
                starting(stage, f"{name}{await queue.take()}")

            for name, us in plan:
                stage.spawn(f"put {name}", puts(us))
                stage.spawn(f"take {name}", takes(name))
            stage.run()
            return [(e.t, e.profile) for e in stage.sink.events]

    assert trace() == trace()


class DrawnWakeUp:
    """As long as a search wants it."""

    def __init__(self, delays_us: list[int]) -> None:
        self._delays_us, self._asked = delays_us, 0

    def _next(self) -> int:
        self._asked += 1
        return self._delays_us[self._asked % len(self._delays_us)]

    def thread(self, process: str, thread: str) -> int:
        return self._next()

    def window(self, process: str, waiting: int) -> int:
        return self._next()

    def step(self, process: str, thread: str) -> int:
        return self._next() // 10

    def unpark(self, process: str, thread: str) -> int:
        return self._next()


@properties
@example(due=[2, 3], stops=[1, 1, 1, 1, 1, 1, 1, 7], delays_us=[1, 10])
@given(
    due=st.lists(st.integers(0, 300), min_size=2, max_size=12),
    stops=st.lists(st.integers(1, 60), max_size=8),
    delays_us=st.lists(st.integers(0, 80), min_size=1, max_size=6),
)
def test_a_lane_keeps_its_order_however_often_its_process_stands_still(
    due: list[int], stops: list[int], delays_us: list[int]
) -> None:
    """A later item never runs before an earlier one."""
    with Stage(DrawnWakeUp(delays_us)) as stage:
        lane = stage.process.lane("socket")
        for at_us in sorted(due):
            lane.call_at(at_us, partial(stage.say, str(at_us)))
        now = 0
        for number, after_us in enumerate(stops):
            now += after_us
            stage.kernel.run(now)
            (stage.process.resume if number % 2 else stage.process.pause)()
        stage.process.resume()
        stage.kernel.run()
        assert stage.heard == [str(at_us) for at_us in sorted(due)]
