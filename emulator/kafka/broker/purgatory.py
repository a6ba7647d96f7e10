"""Delayed operations: requests that wait for a condition or for their time to run out.

Owns the watch lists by key, the completion race (each operation completes once) and expiry on a
reaper thread. Knows nothing of what the operations mean. Source:
server/DelayedOperation.scala@2.6.3.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import partial
from operator import attrgetter

from emulator.kafka.broker.context import BrokerContext
from emulator.kernel.scheduler import Callback
from emulator.kernel.sync import Queue


class DelayedOperation:
    """Something that is completed once: by its condition, or by the clock."""

    def __init__(self, delay_ms: int) -> None:
        self.delay_ms = delay_ms
        self.number = 0
        self.completed = False
        self._trying = False
        self._try_again = False
        self._timer: Callback | None = None

    async def try_complete(self) -> bool:
        """Test the condition; call `force_complete` when it holds and return its result."""
        raise AssertionError(f"{type(self).__name__} has no condition")

    def touched(self, key: Hashable) -> None:
        """Something happened to what `key` stands for."""

    async def on_complete(self) -> None:
        """Do what completion means; called exactly once."""
        raise AssertionError(f"{type(self).__name__} does nothing")

    async def on_expiration(self) -> None:
        """It was completed by the clock (onExpiration)."""

    async def force_complete(self) -> bool:
        """Complete unless somebody else did; True when it was this call (forceComplete)."""
        if self.completed:
            return False
        # Before the wait below: any other thread that tries meanwhile must see that it is done.
        self.completed = True
        if self._timer is not None:
            self._timer.cancel()
        await self.on_complete()
        return True

    async def maybe_try_complete(self) -> bool:
        """Try, unless another thread is at it: that one will then try again (maybeTryComplete)."""
        # Java's tryLock: who finds the operation busy leaves it a note, and does not wait.
        if self._trying:
            self._try_again = True
            return False
        done = False
        while not done:
            # The note is taken back before the try: what is left from here on calls for another.
            self._trying, self._try_again = True, False
            done = await self.try_complete()
            self._trying = False
            if not self._try_again:
                break
        return done


_NUMBER = attrgetter("number")


class Purgatory:
    """All delayed operations of one kind at one broker."""

    def __init__(self, context: BrokerContext, name: str) -> None:
        self._context = context
        self.name = name
        self._watchers: dict[Hashable, list[DelayedOperation]] = {}
        self._parked = 0
        self._lane = context.process.lane(f"ExpirationReaper-{context.broker}-{name}")
        self._expired: Queue[DelayedOperation] = Queue(context.kernel)
        context.spawn(f"executor-{name}", self._expire())

    async def try_complete_else_watch(
        self, operation: DelayedOperation, keys: Sequence[Hashable]
    ) -> bool:
        """Try; else watch on every key; then try again, which closes the race with the condition
        coming true meanwhile (tryCompleteElseWatch); where nothing is watched there is none."""
        if await operation.maybe_try_complete():
            return True
        if operation.completed:
            return False
        self._parked += 1
        operation.number = self._parked
        for key in keys:
            self.watch(operation, key)
        # Between the first try and the watch the condition may have come true unseen.
        if keys and await operation.maybe_try_complete():
            return True
        if not operation.completed:
            operation._timer = self._lane.call_later(
                operation.delay_ms * 1000, partial(self._expired.put, operation)
            )
        return False

    def watch(self, operation: DelayedOperation, key: Hashable) -> None:
        """Let `operation` be tried when `key` is checked. Operations that are completed are let go
        of, as Kafka's purge does now and then."""
        watching = self._watchers.get(key)
        if watching is None:
            self._watchers[key] = [operation]
            return
        if watching[0].completed:
            watching[:] = [operation for operation in watching if not operation.completed]
        watching.append(operation)

    def is_watched(self, key: Hashable) -> bool:
        """Whether anything was parked on `key` and may still wait."""
        return key in self._watchers

    def touched(self, key: Hashable) -> None:
        """Something happens to what `key` stands for, but nobody tries whether it completes
        anything."""
        for operation in self._watchers.get(key, ()):
            operation.touched(key)

    async def check_and_complete(self, key: Hashable) -> int:
        """Try every operation that waits on `key`, in the order in which they were parked; returns
        how many were completed."""
        watching = self._watchers.get(key)
        if not watching:
            return 0
        completed = 0
        waiting = [operation for operation in watching if not operation.completed]
        # A fetch that was woken watches again behind younger ones: the order is that of parking.
        for operation in sorted(waiting, key=_NUMBER):
            operation.touched(key)
            if not operation.completed and await operation.maybe_try_complete():
                completed += 1
        # Read again: while an operation was tried others may have been parked on the key.
        left = [operation for operation in watching if not operation.completed]
        if left:
            self._watchers[key] = left
        else:
            self._watchers.pop(key, None)
        return completed

    def watched(self, key: Hashable) -> int:
        """How many operations wait on `key` (numDelayed)."""
        return sum(not operation.completed for operation in self._watchers.get(key, ()))

    async def _expire(self) -> None:
        while True:
            # In a thread of its own: completing may wait for partitions' locks, the timers go on.
            operation = await self._expired.take()
            if await operation.force_complete():
                await operation.on_expiration()
