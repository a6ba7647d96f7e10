"""The wall clock of the live world: who wakes its kernel, and what is done before it waits."""

from __future__ import annotations

import threading

from emulator.trace.sink import Sink
from emulator.worlds.live_clock import LiveClock, LiveKernel

FAR_US = 60_000_000


def test_what_another_thread_puts_ends_the_wait() -> None:
    clock, done = LiveClock(), list[str]()
    threading.Timer(0.01, lambda: clock.put(lambda: done.append("put"))).start()
    while not done:
        assert clock.wait(FAR_US) < FAR_US
        for action in clock.inbox():
            action()


def test_what_was_put_before_the_wait_is_not_waited_for() -> None:
    clock = LiveClock()
    for _ in range(3):
        clock.put(lambda: None)
    clock.wait(FAR_US)
    assert len(clock.inbox()) == 3


def test_what_is_put_aside_comes_with_the_next_that_is_put_in_order() -> None:
    clock, said = LiveClock(), list[int]()
    clock.put_without_waking(lambda: said.append(1))
    clock.put(lambda: said.append(2))
    clock.put_without_waking(lambda: said.append(3))
    clock.wait(FAR_US)
    for action in clock.inbox():
        action()
    assert said == [1, 2, 3]


def test_what_is_to_be_done_before_the_wait_is_done_once() -> None:
    clock, said = LiveClock(), list[str]()

    def send() -> None:
        said.append("sent")

    clock.before_waiting(send)
    clock.before_waiting(send)
    clock.put(lambda: None)
    clock.wait(FAR_US)
    clock.wait(clock.now_us())
    assert said == ["sent"]


def test_it_is_done_at_once_while_others_wait_for_their_turn() -> None:
    clock, said = LiveClock(), list[str]()
    kernel = LiveKernel(Sink(), clock)
    lane = kernel.process("broker-1").lane("main-EventThread")
    kernel.soon(lambda: said.append("later"))
    kernel.make_ready(lane.callback(lambda: None, -1))
    kernel.soon(lambda: said.append("now"))
    assert said == ["now"]
    kernel.run(kernel.now)
    assert said == ["now", "later"]
