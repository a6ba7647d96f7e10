"""Requests of brokers and clients to the controller: each becomes an event in its queue.

A request handler thread calls these methods. The controller-event-thread does the work when the
event's turn comes, if this broker is the controller then. Owns the responses, including those to
dropped events. Source: controller/KafkaController.scala@2.6.3 (the methods that KafkaApis calls);
spec §6.11-§6.13, §7.4.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from emulator.kafka.controller.alter_isr import AlterIsrs
from emulator.kafka.controller.controlled_shutdown import shut_down
from emulator.kafka.controller.elections import Elections
from emulator.kafka.controller.errors import ControllerFailure
from emulator.kafka.controller.event_manager import ControllerEvent, ControllerEventManager
from emulator.kafka.controller.parts import ControllerParts
from emulator.kafka.controller.reassignment import Reassignments
from emulator.kafka.model.errors import Errors, KafkaError
from emulator.kafka.profiles.guards.controller import DROPPED_REASSIGNMENT_CALLS_ANSWERED
from emulator.kafka.protocol.messages import (
    AlterIsrRequest,
    AlterIsrResponse,
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    ElectionResults,
    ElectionType,
    Reassignment,
)
from emulator.trace.values import TopicPartition
from zk.errors import ControllerMoved, ZooKeeperError


class ControllerRequests:
    """The requests to one broker's controller."""

    def __init__(
        self,
        parts: ControllerParts,
        events: ControllerEventManager,
        is_active: Callable[[], bool],
        elections: Elections,
        reassignments: Reassignments,
    ) -> None:
        self._parts, self._host = parts, parts.host
        self._events, self._is_active = events, is_active
        self._elections, self._reassignments = elections, reassignments
        self._alter_isrs = AlterIsrs(parts, reassignments)
        self._answers_dropped_calls = DROPPED_REASSIGNMENT_CALLS_ANSWERED in parts.host.guards

    @property
    def is_active(self) -> bool:
        """Whether this broker is the controller, as far as it knows."""
        return self._is_active()

    def is_topic_queued_for_deletion(self, topic: str) -> bool:
        """Read by a request handler thread without a lock, between two steps of the controller."""
        return topic in self._parts.context.topics_to_be_deleted

    def controlled_shutdown(
        self,
        request: ControlledShutdownRequest,
        respond: Callable[[ControlledShutdownResponse], None],
    ) -> None:
        """Process ControlledShutdown."""
        not_controller = ControlledShutdownResponse(Errors.STALE_CONTROLLER_EPOCH)

        async def process() -> None:
            if not self.is_active:
                respond(not_controller)
                return
            try:
                left = await shut_down(self._parts, request.broker, request.broker_epoch)
                respond(ControlledShutdownResponse(Errors.NONE, left))
            except KafkaError as failed:
                respond(ControlledShutdownResponse(failed.error))
            # Any exception becomes the response (Try), even ControllerMoved: this controller
            # resigns only when its watch fires.
            except ControllerMoved:
                respond(not_controller)
            except (ZooKeeperError, ControllerFailure) as error:
                self._host.failed("ControlledShutdown", error)
                respond(ControlledShutdownResponse(Errors.UNKNOWN_SERVER_ERROR))

        event = ControllerEvent("ControlledShutdown", process, lambda: respond(not_controller))
        self._events.put(event)

    def alter_isrs(
        self, request: AlterIsrRequest, respond: Callable[[AlterIsrResponse], None]
    ) -> None:
        """Process AlterIsr. A dropped event gets no response: `preempt` of AlterIsrReceived does
        nothing, and the leader waits until its request times out."""

        async def process() -> None:
            if self.is_active:
                await self._alter_isrs.process(request, respond)
            else:
                self._alter_isrs.refuse(request, Errors.NOT_CONTROLLER, respond)

        self._events.put(ControllerEvent("AlterIsrReceived", process))

    def elect_leaders(
        self,
        partitions: tuple[TopicPartition, ...],
        election_type: ElectionType,
        done: Callable[[ElectionResults], Awaitable[None]],
    ) -> None:
        """Process ElectLeaders."""
        refused = ElectionResults({}, dict.fromkeys(partitions, Errors.NOT_CONTROLLER))

        async def process() -> None:
            if self.is_active:
                await done(await self._elections.by_request(partitions, election_type))
            else:
                await done(refused)

        async def refuse() -> None:
            await done(refused)

        def preempted() -> None:
            # The thread that drops events must not block, but `done` may: it runs in a task with
            # the name of the session expiry thread.
            self._host.spawn("zk-session-expiry-handler0", refuse())

        self._events.put(ControllerEvent("ReplicaLeaderElection", process, preempted))

    def alter_partition_reassignments(
        self,
        targets: Mapping[TopicPartition, tuple[int, ...] | None],
        done: Callable[[dict[TopicPartition, Errors]], None],
    ) -> None:
        """Process AlterPartitionReassignments."""

        def refuse() -> None:
            done(dict.fromkeys(targets, Errors.NOT_CONTROLLER))

        async def process() -> None:
            if self.is_active:
                done(await self._reassignments.by_request(targets))
            else:
                refuse()

        preempted = refuse if self._answers_dropped_calls else None
        self._events.put(ControllerEvent("ApiPartitionReassignment", process, preempted))

    def list_partition_reassignments(
        self,
        partitions: tuple[TopicPartition, ...] | None,
        done: Callable[[tuple[Reassignment, ...] | Errors], None],
    ) -> None:
        """Process ListPartitionReassignments: the reassignments in progress among these partitions
        (None: among all)."""

        def refuse() -> None:
            done(Errors.NOT_CONTROLLER)

        async def process() -> None:
            if self.is_active:
                done(self._reassignments.under_way(partitions))
            else:
                refuse()

        preempted = refuse if self._answers_dropped_calls else None
        self._events.put(ControllerEvent("ListPartitionReassignments", process, preempted))
