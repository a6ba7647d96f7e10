"""What brokers and clients ask of a controller: each request is an event of its queue.

Called on a request handler's thread; the work is done when the event's turn comes, on the
controller's, and only if this broker is the controller then. Owns who gets an answer, and what it
says when the event never gets its turn. Source: controller/KafkaController.scala@2.6.3 (the methods
that KafkaApis calls); spec §6.11-§6.13, §7.4.
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
    """The requests of one broker's controller."""

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

    @property
    def is_active(self) -> bool:
        """This broker is the controller, as far as it knows."""
        return self._is_active()

    def is_topic_queued_for_deletion(self, topic: str) -> bool:
        """Read by a handler thread, between two of the controller's steps."""
        return topic in self._parts.context.topics_to_be_deleted

    def controlled_shutdown(
        self,
        request: ControlledShutdownRequest,
        respond: Callable[[ControlledShutdownResponse], None],
    ) -> None:
        """A broker is about to stop."""
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
            # Whatever is thrown is the answer (Try): that a newer controller exists, too, so this
            # one resigns only when it hears of it by its watch.
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
        """A leader proposes ISRs. When the event is dropped there is no answer: `preempt` of
        AlterIsrReceived does nothing, and the leader waits until its request times out."""

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
        """ElectLeaders through the API."""
        refused = ElectionResults({}, dict.fromkeys(partitions, Errors.NOT_CONTROLLER))

        async def process() -> None:
            if self.is_active:
                await done(await self._elections.by_request(partitions, election_type))
            else:
                await done(refused)

        async def refuse() -> None:
            await done(refused)

        def preempted() -> None:
            # Who drops the events cannot wait, `done` may: a task under that thread's name.
            self._host.spawn("zk-session-expiry-handler0", refuse())

        self._events.put(ControllerEvent("ReplicaLeaderElection", process, preempted))

    def alter_partition_reassignments(
        self,
        targets: Mapping[TopicPartition, tuple[int, ...] | None],
        done: Callable[[dict[TopicPartition, Errors]], None],
    ) -> None:
        """AlterPartitionReassignments through the API. In 2.6 there is no answer when the event is
        dropped."""

        async def process() -> None:
            if self.is_active:
                done(await self._reassignments.by_request(targets))
            else:
                done(dict.fromkeys(targets, Errors.NOT_CONTROLLER))

        self._events.put(ControllerEvent("ApiPartitionReassignment", process))

    def list_partition_reassignments(
        self,
        partitions: tuple[TopicPartition, ...] | None,
        done: Callable[[tuple[Reassignment, ...] | Errors], None],
    ) -> None:
        """ListPartitionReassignments: what of these (None: of all) is under way."""

        async def process() -> None:
            if self.is_active:
                done(self._reassignments.under_way(partitions))
            else:
                done(Errors.NOT_CONTROLLER)

        self._events.put(ControllerEvent("ListPartitionReassignments", process))
