"""The primitives on which a thread can block, and the cause with which it continues."""

from __future__ import annotations

from collections import deque

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.kernel.scheduler import TaskFailed
from emulator.kernel.sync import Condition, Monitor, Promise, Queue, RwLock, Semaphore
from emulator.trace import events
from tests.unit.kernel.stage import FixedWakeUp, Stage

properties = settings(derandomize=True, deadline=None)


def starting(stage: Stage, profile: str) -> None:
    stage.kernel.emit(events.BrokerStarting, 1, profile)


def causes(stage: Stage) -> dict[str, int]:
    return {e.profile: e.cause for e in stage.sink.events}


# -- Promise ---------------------------------------------------------------------------------------


def test_a_promise_lets_all_waiters_go_on_in_their_order_and_later_ones_at_once() -> None:
    with Stage() as stage:
        promise: Promise[str] = Promise(stage.kernel)

        async def waits(name: str) -> None:
            stage.say(f"{name} {await promise.wait()}")

        stage.spawn("a", waits("a"))
        stage.spawn("b", waits("b"))
        assert stage.run() == []
        promise.resolve("x")
        assert stage.run() == ["a x", "b x"]
        stage.spawn("c", waits("c"))
        assert stage.run() == ["c x"]


def test_the_first_answer_counts() -> None:
    with Stage() as stage:
        promise: Promise[int] = Promise(stage.kernel)
        assert not promise.done
        promise.resolve(1)
        promise.resolve(2)

        async def waits() -> None:
            stage.say(str(await promise.wait()))

        stage.spawn("a", waits())
        assert stage.run() == ["1"]


def test_none_is_a_value_too() -> None:
    with Stage() as stage:
        promise: Promise[None] = Promise(stage.kernel)
        promise.resolve(None)
        assert promise.done


def test_a_promise_hands_over_the_cause() -> None:
    with Stage() as stage:
        promise: Promise[None] = Promise(stage.kernel)

        async def waits() -> None:
            starting(stage, "before")
            await promise.wait()
            starting(stage, "after")

        async def resolves() -> None:
            starting(stage, "answer")
            promise.resolve(None)

        stage.spawn("a", waits())
        stage.spawn("b", resolves())
        stage.run()
        assert causes(stage) == {"before": -1, "answer": -1, "after": 1}


# -- Queue -----------------------------------------------------------------------------------------


def test_items_come_in_their_order_and_takers_are_served_in_theirs() -> None:
    with Stage() as stage:
        queue: Queue[int] = Queue(stage.kernel)

        async def takes(name: str) -> None:
            stage.say(f"{name}{await queue.take()}")

        for name in ("a", "b", "c"):
            stage.spawn(name, takes(name))
        stage.run()
        for n in (1, 2):
            queue.put(n)
        assert stage.run() == ["a1", "b2"]
        queue.put(3)
        assert stage.run() == ["c3"]


def test_a_taker_that_comes_first_gets_it_though_another_was_woken() -> None:
    """Like LinkedBlockingQueue: the woken one waits again."""
    with Stage() as stage:
        queue: Queue[int] = Queue(stage.kernel)

        async def takes(name: str) -> None:
            stage.say(f"{name}{await queue.take()}")

        async def puts_and_takes() -> None:
            queue.put(1)
            await takes("quick")

        stage.spawn("slow", takes("slow"))
        stage.run()
        stage.spawn("quick", puts_and_takes())
        assert stage.run() == ["quick1"]
        queue.put(2)
        assert stage.run() == ["slow2"]


def test_a_queue_hands_over_the_cause_of_whoever_put() -> None:
    with Stage() as stage:
        queue: Queue[str] = Queue(stage.kernel)

        async def puts() -> None:
            starting(stage, "one")
            queue.put("x")
            starting(stage, "two")
            queue.put("y")

        async def takes() -> None:
            for _ in range(2):
                starting(stage, await queue.take())

        stage.spawn("a", puts())
        stage.spawn("b", takes())
        stage.run()
        assert causes(stage) == {"one": -1, "two": 0, "x": 0, "y": 1}


def test_clearing_a_queue_returns_what_was_in_it() -> None:
    with Stage() as stage:
        queue: Queue[int] = Queue(stage.kernel)
        queue.put(1)
        queue.put(2)
        assert (len(queue), queue.clear(), len(queue)) == (2, [1, 2], 0)


@properties
@given(st.lists(st.sampled_from(["put", "take"]), max_size=30))
def test_a_queue_is_a_fifo_queue(steps: list[str]) -> None:
    with Stage() as stage:
        queue: Queue[int] = Queue(stage.kernel)
        taken: list[int] = []

        async def takes() -> None:
            taken.append(await queue.take())

        for number, step in enumerate(steps):
            if step == "put":
                queue.put(number)
            else:
                stage.spawn(f"t{number}", takes())
            stage.run()
        put = [n for n, step in enumerate(steps) if step == "put"]
        assert taken == put[: min(len(put), steps.count("take"))]


# -- RwLock ----------------------------------------------------------------------------------------


class Script:
    """Threads of a test that take and give back a lock, one step at a time."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.lock = RwLock(stage.kernel, "lock")
        self.steps: dict[str, Queue[str]] = {}

    def do(self, thread: str, step: str) -> list[str]:
        """`r`ead, `w`rite, `R`elease read, `W`rite released, `p`ass; returns what got through."""
        if thread not in self.steps:
            self.steps[thread] = Queue(self.stage.kernel)
            self.stage.spawn(thread, self._run(thread))
        self.steps[thread].put(step)
        return self.stage.run()

    async def _run(self, thread: str) -> None:
        lock = self.lock
        while True:
            step = await self.steps[thread].take()
            if step == "r":
                await lock.acquire_read()
            elif step == "w":
                await lock.acquire_write()
            elif step == "p":
                await lock.pass_read()
            elif step == "R":
                lock.release_read()
            elif step == "W":
                lock.release_write()
            self.stage.say(f"{thread}{step}")


def test_readers_share_and_a_writer_waits_for_the_last_of_them() -> None:
    with Stage() as stage:
        it = Script(stage)
        assert it.do("a", "r") == ["ar"]
        assert it.do("b", "r") == ["br"]
        assert it.do("w", "w") == []
        assert it.do("a", "R") == ["aR"]
        assert it.do("b", "R") == ["bR", "ww"]


def test_a_writer_excludes_readers_and_writers_and_readers_in_a_row_come_together() -> None:
    with Stage() as stage:
        it = Script(stage)
        assert it.do("w", "w") == ["ww"]
        assert [it.do(t, s) for t, s in ("ar", "br", "xw", "cr")] == [[], [], [], []]
        assert it.do("w", "W") == ["wW", "ar", "br"]
        assert it.do("a", "R") == ["aR"]
        assert it.do("b", "R") == ["bR", "xw"]
        assert it.do("x", "W") == ["xW", "cr"]


def test_a_reader_waits_behind_a_writer_that_waits_first() -> None:
    """Non-fair as in Java: only the head of the queue is looked at."""
    with Stage() as stage:
        it = Script(stage)
        it.do("a", "r")
        assert it.do("w", "w") == []
        assert not it.lock.readable
        assert it.do("b", "r") == []
        assert it.do("a", "R") == ["aR", "ww"]
        assert it.do("w", "W") == ["wW", "br"]


def test_who_has_waited_must_wake_up_and_meanwhile_the_lock_belongs_to_whoever_comes() -> None:
    """AbstractQueuedSynchronizer's barging: a release only unparks the first in the queue."""
    with Stage(FixedWakeUp(0, a=300)) as stage:
        it = Script(stage)
        assert it.do("w", "w") == ["ww"]
        assert [it.do(t, s) for t, s in ("ar", "xw")] == [[], []]
        stage.spawn("b", barges(it))
        assert it.do("w", "W") == ["wW", "b takes it", "b gives it back", "ar"]
        assert it.do("a", "R") == ["aR", "xw"]


async def barges(it: Script) -> None:
    """A thread that is running comes by while another wakes up."""
    kernel = it.stage.kernel
    await kernel.sleep_until(kernel.now + 100)
    await it.lock.acquire_write()
    it.stage.say("b takes it")
    await kernel.sleep(1000)
    it.lock.release_write()
    it.stage.say("b gives it back")


def test_a_reader_that_holds_it_already_takes_it_again_past_a_waiting_writer() -> None:
    with Stage() as stage:
        it = Script(stage)
        it.do("a", "r")
        it.do("w", "w")
        assert it.do("a", "r") == ["ar"]
        assert it.do("a", "R") == ["aR"]
        assert it.do("a", "R") == ["aR", "ww"]


def test_the_writer_may_write_again_and_read_inside_and_step_down_to_reading() -> None:
    with Stage() as stage:
        it = Script(stage)
        for step in "wwr":
            assert it.do("a", step) == [f"a{step}"]
        assert it.do("b", "r") == []
        assert it.do("a", "W") == ["aW"]
        assert it.do("a", "W") == ["aW", "br"]
        assert it.do("x", "w") == []
        assert it.do("b", "R") == ["bR"]
        assert it.do("a", "R") == ["aR", "xw"]


def test_who_reads_cannot_step_up_to_writing_it_would_wait_for_itself() -> None:
    with Stage() as stage:
        it = Script(stage)
        it.do("a", "r")
        it.do("b", "r")
        with pytest.raises(TaskFailed, match="would wait for itself"):
            it.do("a", "w")


def test_nobody_gives_back_what_another_one_holds() -> None:
    with Stage() as stage:
        it = Script(stage)
        it.do("a", "w")
        with pytest.raises(TaskFailed, match="releases lock that"):
            it.do("b", "W")


def test_passing_by_waits_as_reading_does_and_keeps_nothing() -> None:
    with Stage() as stage:
        it = Script(stage)
        assert it.do("a", "p") == ["ap"]
        assert it.do("w", "w") == ["ww"]
        assert it.do("w", "p") == ["wp"]
        assert it.do("a", "p") == []
        assert it.do("w", "W") == ["wW", "ap"]
        assert it.do("w", "w") == ["ww"]


def test_passing_by_waits_behind_a_writer_that_waits_first() -> None:
    with Stage() as stage:
        it = Script(stage)
        it.do("a", "r")
        it.do("w", "w")
        assert it.do("b", "p") == []
        assert it.do("a", "R") == ["aR", "ww"]
        assert it.do("w", "W") == ["wW", "bp"]


class ReferenceLock:
    """The rules, written down once more: who holds what, who waits, and the head of the queue."""

    def __init__(self) -> None:
        self.writer: str | None = None
        self.readers: set[str] = set()
        self.queue: deque[tuple[str, str]] = deque()

    def ask(self, thread: str, how: str) -> list[str]:
        writer_first = bool(self.queue) and self.queue[0][1] == "w"
        if how == "r" and self.writer is None and not writer_first:
            self.readers.add(thread)
            return [f"{thread}r"]
        if how == "w" and self.writer is None and not self.readers:
            self.writer = thread
            return [f"{thread}w"]
        self.queue.append((thread, how))
        return []

    def give_back(self, thread: str) -> list[str]:
        if self.writer == thread:
            self.writer, heard = None, [f"{thread}W"]
        else:
            self.readers.discard(thread)
            heard = [f"{thread}R"]
        while self.queue and self.writer is None:
            next_thread, how = self.queue[0]
            if how == "w" and self.readers:
                break
            self.queue.popleft()
            if how == "w":
                self.writer = next_thread
            else:
                self.readers.add(next_thread)
            heard.append(f"{next_thread}{how}")
        return heard


@properties
@given(st.lists(st.tuples(st.sampled_from("abcde"), st.sampled_from("rw")), max_size=40))
def test_the_lock_does_what_the_rules_say(steps: list[tuple[str, str]]) -> None:
    """Each step: a thread that holds it releases it, one that waits keeps waiting, another requests
    it."""
    with Stage() as stage:
        it, rules = Script(stage), ReferenceLock()
        for thread, how in steps:
            if thread == rules.writer:
                assert it.do(thread, "W") == rules.give_back(thread)
            elif thread in rules.readers:
                assert it.do(thread, "R") == rules.give_back(thread)
            elif thread not in [waiting for waiting, _ in rules.queue]:
                assert it.do(thread, how) == rules.ask(thread, how)
            assert it.lock.readable == (
                rules.writer is None and not (rules.queue and rules.queue[0][1] == "w")
            )


def test_a_lock_is_no_cause() -> None:
    with Stage() as stage:
        lock = RwLock(stage.kernel)

        async def holds() -> None:
            await lock.acquire_write()
            await stage.kernel.sleep(10)
            starting(stage, "owner")
            lock.release_write()

        async def waits() -> None:
            starting(stage, "before")
            await lock.acquire_read()
            starting(stage, "after")
            lock.release_read()

        stage.spawn("a", holds())
        stage.spawn("b", waits())
        stage.run()
        assert causes(stage) == {"before": -1, "owner": -1, "after": 0}


# -- Monitor, Condition, Semaphore -----------------------------------------------------------------


def test_a_monitor_is_exclusive_re_entrant_and_first_come_first_served() -> None:
    with Stage() as stage:
        monitor = Monitor(stage.kernel)

        async def works(name: str) -> None:
            await monitor.enter()
            await monitor.enter()
            stage.say(f"{name} in")
            await stage.kernel.sleep(10)
            monitor.leave()
            stage.say(f"{name} out")
            monitor.leave()

        for name in ("a", "b", "c"):
            stage.spawn(name, works(name))
        assert stage.run() == ["a in", "a out", "b in", "b out", "c in", "c out"]
        assert monitor.owner is None


def test_nobody_overtakes_who_was_given_a_monitor_but_has_not_run_yet() -> None:
    with Stage() as stage:
        monitor = Monitor(stage.kernel)

        async def leaves_and_enters() -> None:
            await monitor.enter()
            await stage.kernel.sleep(10)
            monitor.leave()
            await monitor.enter()
            stage.say("a again")
            monitor.leave()

        async def enters() -> None:
            await monitor.enter()
            stage.say("b")
            monitor.leave()

        stage.spawn("a", leaves_and_enters())
        stage.spawn("b", enters())
        assert stage.run() == ["b", "a again"]


def test_nobody_leaves_a_monitor_that_another_one_holds() -> None:
    with Stage() as stage:
        monitor = Monitor(stage.kernel, "isrChangeSet")

        async def enters() -> None:
            await monitor.enter()

        async def leaves() -> None:
            monitor.leave()

        stage.spawn("a", enters())
        stage.spawn("b", leaves())
        with pytest.raises(TaskFailed, match="leaves isrChangeSet that"):
            stage.run()


def test_a_condition_gives_the_monitor_up_and_takes_it_again_before_it_goes_on() -> None:
    with Stage() as stage:
        monitor = Monitor(stage.kernel)
        condition = Condition(stage.kernel, monitor)

        async def waits() -> None:
            await monitor.enter()
            await condition.wait(1_000)
            stage.say(f"woken at {stage.kernel.now}")
            monitor.leave()

        async def signals() -> None:
            await monitor.enter()
            condition.signal_all()
            await stage.kernel.sleep(300)
            stage.say("signalled")
            monitor.leave()

        stage.spawn("a", waits())
        stage.spawn("b", signals())
        assert stage.run(until_us=900) == ["signalled", "woken at 300"]
        assert stage.run() == [], "the timer was called off"


def test_a_condition_that_nobody_signals_ends_with_its_time() -> None:
    with Stage() as stage:
        monitor = Monitor(stage.kernel)
        condition = Condition(stage.kernel, monitor)

        async def waits() -> None:
            await monitor.enter()
            await condition.wait(1_000)
            stage.say(f"at {stage.kernel.now}")
            monitor.leave()

        stage.spawn("a", waits())
        assert stage.run() == ["at 1000"]


@properties
@given(st.integers(1, 4), st.lists(st.integers(0, 30), min_size=1, max_size=12))
def test_no_more_than_its_permits_are_inside_a_semaphore(permits: int, works: list[int]) -> None:
    with Stage() as stage:
        semaphore = Semaphore(stage.kernel, permits)
        inside: list[int] = []
        most = 0

        async def body(number: int, us: int) -> None:
            nonlocal most
            await semaphore.acquire()
            inside.append(number)
            most = max(most, len(inside))
            stage.say(str(number))
            await stage.kernel.sleep(us)
            inside.remove(number)
            semaphore.release()

        for number, us in enumerate(works):
            stage.spawn(str(number), body(number, us))
        heard = stage.run()
        assert most <= permits
        assert sorted(heard, key=int) == [str(n) for n in range(len(works))]
        if min(works) > 0:
            assert most == min(permits, len(works))
