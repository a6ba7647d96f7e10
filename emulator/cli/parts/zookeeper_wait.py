"""Waits for the user's own ZooKeeper server, and shows for what and how much longer."""

from __future__ import annotations

import math
import time

from emulator.cli.parts.options import interrupt_on_signals
from emulator.cli.parts.progress import ProgressLine
from zk.real.server import READY_TIMEOUT_MS, Address, NotReady, parse_address, wait_until_ready

ATTEMPT_MS = 1_000


def wait_for_server(zookeeper: str, *, shown: bool = True) -> None:
    """Like `wait_for_zookeeper`, for a `--zookeeper` option; a server that the run starts needs no
    wait."""
    if ":" in zookeeper:
        wait_for_zookeeper(parse_address(zookeeper), shown=shown)


def wait_for_zookeeper(
    address: Address, timeout_ms: int = READY_TIMEOUT_MS, *, shown: bool = True
) -> None:
    """Return when a session can be opened. Raises NotReady after `timeout_ms`."""
    deadline_s = time.monotonic() + timeout_ms / 1000
    with interrupt_on_signals(), ProgressLine(shown=shown) as line:
        while True:
            left_ms = round((deadline_s - time.monotonic()) * 1000)
            try:
                return wait_until_ready(address, max(1, min(ATTEMPT_MS, left_ms)))
            except NotReady as error:
                left_s = deadline_s - time.monotonic()
                cause = error.__cause__ or "no answer"
                if left_s <= 0:
                    raise NotReady(
                        f"no ZooKeeper server at {address.hosts} after {timeout_ms / 1000:g} s:"
                        f" {cause}"
                    ) from error
                line.update(
                    f"waiting for ZooKeeper at {address.hosts} ({cause});"
                    f" giving up in {math.ceil(left_s)} s"
                )
