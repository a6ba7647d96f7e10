"""Delayed operations: requests that wait for a condition or a timeout.

Owns the watch lists by key, the race for completion (each operation completes once), and expiry on
a reaper thread. The meaning of an operation does not matter here. Source:
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
    """An operation that completes once: by its condition or by its timeout."""

    def __init__(self, delay_ms: int) -> None:
        self.delay_ms = delay_ms
        self.number = 0
        self.completed = False
        self._trying = False
        self._try_again = False
        self._timer: Callback | None = None

    async def try_complete(self) -> bool:
        """Check the condition; if it holds, return the result of `force_complete`."""
        raise AssertionError(f"{type(self).__name__} has no condition")

    def touched(self, key: Hashable) -> None:
        """The subject of `key` has changed."""

    async def on_complete(self) -> None:
        """The effect of completion; called exactly once."""
        raise AssertionError(f"{type(self).__name__} does nothing")

    async def on_expiration(self) -> None:
        """The operation was completed by its timeout (onExpiration)."""

    async def force_complete(self) -> bool:
        """Complete the operation; True if this call did it, False if another one had
        (forceComplete)."""
        if self.completed:
            return False
        # Set before the await below: other threads that try meanwhile must see it.
        self.completed = True
        if self._timer is not None:
            self._timer.cancel()
        await self.on_complete()
        return True

    async def maybe_try_complete(self) -> bool:
        """Try, unless another thread is trying: that one then tries again (maybeTryComplete)."""
        # Java's tryLock: a thread that finds the operation busy leaves a flag and does not wait.
        if self._trying:
            self._try_again = True
            return False
        done = False
        while not done:
            # The flag is cleared before the attempt: a flag set from here on causes another
            # attempt.
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
        """Try; otherwise watch every key and try again. The second attempt closes the race with a
        condition that became true before the watch (tryCompleteElseWatch)."""
        if await operation.maybe_try_complete():
            return True
        if operation.completed:
            return False
        # The number orders operations by their first wait, even if they watch a key again later.
        self._parked += 1
        operation.number = self._parked
        for key in keys:
            self.watch(operation, key)
        # The condition may have become true between the first attempt and the watch.
        if keys and await operation.maybe_try_complete():
            return True
        if not operation.completed:
            operation._timer = self._lane.call_later(
                operation.delay_ms * 1000, partial(self._expired.put, operation)
            )
        return False

    def watch(self, operation: DelayedOperation, key: Hashable) -> None:
        """Try `operation` whenever `key` is checked. Completed operations are removed, as by
        Kafka's purge."""
        watching = self._watchers.get(key)
        if watching is None:
            self._watchers[key] = [operation]
            return
        if watching[0].completed:
            watching[:] = [operation for operation in watching if not operation.completed]
        watching.append(operation)

    def is_watched(self, key: Hashable) -> bool:
        """Whether an operation may still wait for `key`."""
        return key in self._watchers

    def touched(self, key: Hashable) -> None:
        """The subject of `key` changes; no completion is tried."""
        for operation in self._watchers.get(key, ()):
            operation.touched(key)

    async def check_and_complete(self, key: Hashable) -> int:
        """Try every operation that waits for `key`, in the order in which they started to wait;
        returns the number of completed ones."""
        watching = self._watchers.get(key)
        if not watching:
            return 0
        completed = 0
        waiting = [operation for operation in watching if not operation.completed]
        if not waiting:
            del self._watchers[key]
            return 0
        if len(waiting) > 1:
            # A fetch that was woken is watched again after younger ones: sort by the first wait.
            waiting.sort(key=_NUMBER)
        for operation in waiting:
            operation.touched(key)
            if not operation.completed and await operation.maybe_try_complete():
                completed += 1
        # Read again: other operations may have been added to the key during an attempt.
        left = [operation for operation in watching if not operation.completed]
        if left:
            self._watchers[key] = left
        else:
            self._watchers.pop(key, None)
        return completed

    def watched(self, key: Hashable) -> int:
        """The number of operations that wait for `key` (numDelayed)."""
        return sum(not operation.completed for operation in self._watchers.get(key, ()))

    async def _expire(self) -> None:
        while True:
            # In a separate thread: a completion may wait for partitions' locks while the timers
            # continue.
            operation = await self._expired.take()
            if await operation.force_complete():
                await operation.on_expiration()
