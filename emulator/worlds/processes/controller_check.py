"""Validates the sender of a control request by what the broker knows of elections.

Kafka without authentication accepts any sender with any epoch, and then rejects the real
controller. Here a controller and its epoch are accepted together and remembered: another sender
with that epoch is rejected. A new epoch is accepted if the broker has noticed an election since the
last one, and the sender is the broker whose id its own KafkaController has read from /controller.
Thus no request goes to ZooKeeper that Kafka does not send. Any other pair is looked up once in
/controller_epoch and /controller. A broker that cannot look it up (its session is disconnected, or
ZooKeeper is slow) accepts it, as Kafka does. This is not authentication: epoch and id are no
secrets.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from emulator.kafka.controller.controller import NO_CONTROLLER
from emulator.kafka.protocol.messages import ControlRequest
from emulator.kernel.scheduler import Kernel, Process
from emulator.kernel.sync import Promise
from emulator.trace.events import AnyEvent, ZkWatchFired
from zk import paths
from zk.client.kafka_zk_client import KafkaZkClient
from zk.errors import MalformedZNode, ZooKeeperError
from zk.ops import EventType

THREAD = "control-request-check"
PATIENCE_US = 500_000
FIRST = 1000
"""A broker that knows no epoch yet believes one up to here."""


class _Elected(NamedTuple):
    """The controller in ZooKeeper; none between two elections."""

    epoch: int
    controller: int | None


class ControllerCheck:
    """`zk_client` returns the client of the broker's session, None before there is one.
    `active_controller`: the controller's id that the broker's own KafkaController has read. Listens
    to the broker's events.
    """

    def __init__(
        self,
        kernel: Kernel,
        process: Process,
        zk_client: Callable[[], KafkaZkClient | None],
        active_controller: Callable[[], int],
    ) -> None:
        self._kernel, self._process, self._zk_client = kernel, process, zk_client
        self._active_controller = active_controller
        self._epoch, self._controller = -1, NO_CONTROLLER
        """The highest epoch that was believed, and whose it is."""
        self._is_vacant = self._elected_since = False
        """Whether /controller was deleted last, and whether an election began since that epoch."""

    def on_event(self, event: AnyEvent) -> None:
        if isinstance(event, ZkWatchFired) and event.path == paths.CONTROLLER:
            deleted = event.type == EventType.NODE_DELETED.value
            # The new controller's request may arrive before the watch event of its znode, which
            # would then allow a second sender.
            if deleted or not self._is_vacant:
                self._elected_since = True
            self._is_vacant = deleted

    def __call__(self, request: ControlRequest, decide: Callable[[str], None]) -> None:
        """Call `decide` with the reason for a rejection, or "": at once, or when ZooKeeper has
        responded."""
        client = self._zk_client()
        if client is None or self._is_known(request):
            self._believe(request)
            decide("")
        else:
            self._process.spawn(THREAD, self._check(client, request, decide))

    def _is_known(self, request: ControlRequest) -> bool:
        controller, epoch = request.controller_id, request.controller_epoch
        if epoch < self._epoch:
            return True  # it is answered with STALE_CONTROLLER_EPOCH
        if epoch == self._epoch:
            return controller == self._controller
        active = self._active_controller()
        if self._epoch < 0:  # the controller may be faster than this broker's first look at it
            return epoch <= FIRST and active in (controller, NO_CONTROLLER)
        return self._elected_since and epoch == self._epoch + 1 and active == controller

    def _believe(self, request: ControlRequest) -> None:
        if request.controller_epoch >= self._epoch:
            if request.controller_epoch > self._epoch:
                self._elected_since = False
            self._epoch, self._controller = request.controller_epoch, request.controller_id

    async def _check(
        self, client: KafkaZkClient, request: ControlRequest, decide: Callable[[str], None]
    ) -> None:
        answer: Promise[_Elected | None] = Promise(self._kernel)

        async def read() -> None:
            try:
                epoch_and_version = await client.get_controller_epoch()
                controller = await client.get_controller_id()
            except (ZooKeeperError, MalformedZNode):
                epoch_and_version = controller = None
            if not answer.done:
                elected = epoch_and_version and _Elected(epoch_and_version[0], controller)
                answer.resolve(elected)

        def give_up() -> None:
            if not answer.done:
                answer.resolve(None)

        self._process.spawn(THREAD, read())
        timer = self._process.lane(THREAD).call_later(PATIENCE_US, give_up)
        elected = await answer.wait()
        timer.cancel()
        refusal = "" if elected is None else _refusal(request, elected)
        if not refusal:
            self._believe(request)
        decide(refusal)


def _refusal(request: ControlRequest, elected: _Elected) -> str:
    """A controller that was replaced may still send with its own epoch: Kafka decides about
    that."""
    controller, epoch = request.controller_id, request.controller_epoch
    sender = f"a control request of controller {controller} with controller epoch {epoch}"
    if epoch > elected.epoch:
        return f"{sender}; ZooKeeper has {elected.epoch}"
    if epoch == elected.epoch and elected.controller not in (controller, None):
        return f"{sender}; ZooKeeper has controller {elected.controller} in that epoch"
    return ""
