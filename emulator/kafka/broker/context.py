"""What all parts of one broker share: its id, settings, kernel and process.

Also the adapters through which `zk.client.client` blocks on this kernel and writes to the trace.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence, Set
from typing import TypeVar

from emulator.kafka.broker.kafka_scheduler import Job, KafkaScheduler
from emulator.kafka.model.config import KafkaConfig
from emulator.kafka.model.errors import Errors
from emulator.kafka.profiles.base import Profile
from emulator.kafka.profiles.guards.base import Guard
from emulator.kafka.profiles.guards.following import TRUNCATION_ON_FETCH
from emulator.kafka.protocol.messages import ControlRequest
from emulator.kernel.places import At
from emulator.kernel.scheduler import Body, HeldHere, Kernel, Lane, Process, Task
from emulator.kernel.sync import Promise, RwLock, Semaphore
from emulator.trace import events
from zk.errors import MalformedZNode
from zk.ops import (
    Check,
    Create,
    Delete,
    Multi,
    Reply,
    Request,
    SessionState,
    SetData,
    WatchedEvent,
    name_of,
)
from zk.wire import Lane as ZkLane


class BrokerContext:
    """One broker's process and settings."""

    def __init__(
        self, broker: int, kernel: Kernel, process: Process, config: KafkaConfig, profile: Profile
    ) -> None:
        self.broker, self.kernel, self.process = broker, kernel, process
        self.emit: Callable[..., None] = kernel.emitter(broker)
        """Add an event of this broker to the trace: its type and its fields."""
        self.now_ms: Callable[[], int] = kernel.now_ms
        """Kafka's Time.milliseconds."""
        self.config, self.profile = config, profile
        self.guards: Set[Guard] = profile.guards
        """The Kafka fixes that this broker's version has."""
        # A profile whose leaders write ISRs themselves represents inter.broker.protocol.version
        # 2.6.
        self.truncates_on_fetch = (
            TRUNCATION_ON_FETCH in self.guards and profile.propagation == "rpc"
        )
        """isTruncationOnFetchSupported: this broker sends Fetch v12."""
        self.broker_epoch = -1
        """The czxid of its registration; -1 before it is registered, and before 2.2."""
        self.cluster_id: str | None = None
        """The content of `/cluster/id`; None before 0.10.1."""
        self.follower_epochs: dict[int, int] = {}
        """The broker epochs of the followers' last fetches."""
        self.scheduler = KafkaScheduler(kernel, self.spawn)

    def failed(self, what: str, error: Exception) -> None:
        """A Kafka thread logged an exception and continues."""
        self.emit(events.ThreadFailed, what, f"{type(error).__name__}: {error}")

    def refused(self, request: ControlRequest, error: Errors) -> None:
        """A controller's request is rejected as a whole."""
        self.emit(
            events.ControlRequestRefused,
            type(request).__name__.removesuffix("Request"),
            request.controller_id,
            request.controller_epoch,
            error.name,
        )

    def spawn(self, thread: str, body: Body) -> Task:
        """Start one of this broker's threads."""
        return self.process.spawn(thread, body)

    def schedule(self, name: str, body: Job, period_ms: int, delay_ms: int = 0) -> Task:
        """A periodic task on its own scheduler, as the controller has one; the broker's scheduler
        stops before the controller does."""
        return KafkaScheduler(self.kernel, self.spawn).schedule(name, body, period_ms, delay_ms)

    def schedule_once(self, name: str, body: Job, delay_ms: int) -> Task:
        """A KafkaScheduler task that runs once."""

        async def run() -> None:
            await self.kernel.sleep(delay_ms * 1000)
            # A timer has no cause.
            self.kernel.cause = -1
            await body()

        return self.spawn(f"kafka-scheduler/{name}", run())


T = TypeVar("T")


class KernelThreads:
    """`zk.client.client.Threads` on this kernel."""

    def __init__(self, context: BrokerContext) -> None:
        self._kernel, self._process = context.kernel, context.process

    def promise(self) -> Promise[T]:
        return Promise(self._kernel)

    def permits(self, number: int) -> Semaphore:
        return Semaphore(self._kernel, number)

    def read_write_lock(self, name: str) -> RwLock:
        return RwLock(self._kernel, name)

    def lane(self, thread: str) -> Lane:
        return self._process.lane(thread)

    def spawn(self, thread: str, body: Body) -> object:
        return self._process.spawn(thread, body)

    def checkpoint(self, name: str) -> Awaitable[None]:
        return self._kernel.checkpoint(name)

    def now_us(self) -> int:
        return self._kernel.now

    def before(self, request: Request) -> Awaitable[None] | None:
        return self._hold_at("zookeeper", (request,)) if self._kernel.holds is not None else None

    def after(self, requests: Sequence[Request]) -> Awaitable[None] | None:
        if self._kernel.holds is None:
            return None
        return self._hold_at("zookeeper_reply", requests)

    def _hold_at(self, at: At, requests: Sequence[Request]) -> Awaitable[None] | None:
        holds, process = self._kernel.holds, self._process.name
        assert holds is not None
        for request in requests:
            if isinstance(request, Multi):
                # A fenced write's check is for `/controller_epoch`: a hold is for the path of the
                # write itself.
                named = tuple(op.path for op in request.ops if not isinstance(op, Check))
            else:
                named = (request.path,)
            hold = holds.caught(process, at, name_of(request), named)
            if hold is not None:
                return hold.stand()
        return None

    def at_watch(self, event: WatchedEvent, lane: ZkLane) -> HeldHere | None:
        holds = self._kernel.holds
        if holds is None:
            return None
        hold = holds.caught(self._process.name, "watch", event.type.value, (event.path,))
        # Events behind a held one are callbacks of the client's event thread, not messages.
        if hold is not None:
            assert isinstance(lane, Lane)
            hold.lane = lane
        return hold


class TraceProbe:
    """`zk.client.client.Probe` that writes to the trace."""

    def __init__(self, context: BrokerContext) -> None:
        self._context = context

    def sent(self, request: Request) -> None:
        op, path, version, data = describe(request)
        self._context.emit(events.ZkSent, op, path, version, data)

    def replied(self, request: Request, reply: Reply, elapsed_us: int) -> None:
        op, path, _, _ = describe(request)
        # The last operation of a multi is the write; the earlier ones are checks or parents.
        stat = reply.results[-1].stat if reply.results else reply.stat
        version = stat.version if stat is not None else -1
        self._context.emit(
            events.ZkReply, op, reply.path or path, int(reply.code), version, elapsed_us
        )

    def watch_fired(self, event: WatchedEvent) -> None:
        self._context.emit(events.ZkWatchFired, event.type.value, event.path)

    def session_state(self, state: SessionState, session_id: int) -> None:
        self._context.emit(events.ZkSessionState, state.value, session_id)

    def malformed(self, error: MalformedZNode) -> None:
        self._context.emit(events.ZnodeMalformed, error.path, error.field, error.problem)


def describe(request: Request) -> tuple[str, str, int, str]:
    """(operation, path, expected version or -1, payload as text); for a fenced multi those of its
    write."""
    if isinstance(request, Multi):
        inner = [op for op in request.ops if not isinstance(op, Check)]
        last = inner[-1] if inner else request.ops[-1]
        return f"multi/{name_of(last)}", last.path, _version(last), _payload(last)
    return name_of(request), request.path, _version(request), _payload(request)


_VERSIONED = (SetData, Delete, Check)


def _version(request: object) -> int:
    return request.version if isinstance(request, _VERSIONED) else -1


def _payload(request: object) -> str:
    data = request.data if isinstance(request, (SetData, Create)) else None
    # The trace is JSON: bytes that are not UTF-8 are replaced.
    return data.decode("utf-8", "replace") if data else ""
