"""Whether a control request can be from a controller: ZooKeeper has its epoch.

Kafka without authentication believes any epoch, and refuses the real controller from then on. Here
an epoch that the next election cannot have is looked up once in /controller_epoch, which a
controller writes before it sends anything. The next epoch is believed: to ask each time would be a
request that Kafka does not send. So is any, as in Kafka, by a broker that cannot ask (its session
is disconnected, or ZooKeeper is slow). It is no authentication: the epoch is no secret.
"""

from __future__ import annotations

from collections.abc import Callable

from emulator.kafka.protocol.messages import ControlRequest
from emulator.kernel.scheduler import Kernel, Process
from emulator.kernel.sync import Promise
from zk.client.kafka_zk_client import KafkaZkClient
from zk.errors import ZooKeeperError

THREAD = "control-request-check"
PATIENCE_US = 500_000
FIRST = 1000
"""A broker that knows no epoch yet believes one up to here."""


class ControllerCheck:
    """`zk_client`: of the broker's session; None before there is one."""

    def __init__(
        self, kernel: Kernel, process: Process, zk_client: Callable[[], KafkaZkClient | None]
    ) -> None:
        self._kernel, self._process, self._zk_client = kernel, process, zk_client
        self._epoch = -1
        """The highest that was believed."""

    def __call__(self, request: ControlRequest, decide: Callable[[str], None]) -> None:
        """`decide` gets why the request is refused, or "": now, or when ZooKeeper has answered."""
        client, epoch = self._zk_client(), request.controller_epoch
        if client is None or epoch <= (self._epoch + 1 if self._epoch >= 0 else FIRST):
            self._epoch = max(self._epoch, epoch)
            decide("")
        else:
            self._process.spawn(THREAD, self._check(client, epoch, decide))

    async def _check(
        self, client: KafkaZkClient, epoch: int, decide: Callable[[str], None]
    ) -> None:
        answer: Promise[int | None] = Promise(self._kernel)

        async def read() -> None:
            try:
                epoch_and_version = await client.get_controller_epoch()
            except ZooKeeperError:
                epoch_and_version = None
            if not answer.done:
                answer.resolve(None if epoch_and_version is None else epoch_and_version[0])

        def give_up() -> None:
            if not answer.done:
                answer.resolve(None)

        self._process.spawn(THREAD, read())
        timer = self._process.lane(THREAD).call_later(PATIENCE_US, give_up)
        known = await answer.wait()
        timer.cancel()
        if known is not None:
            if epoch > known:
                decide(f"a control request with controller epoch {epoch}; ZooKeeper has {known}")
                return
            self._epoch = max(self._epoch, epoch)
        decide("")
