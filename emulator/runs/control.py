"""The local socket through which commands reach a running cluster: one request, one response.

The socket is a file in the run directory that only its owner can use. Owns the messages and their
transport; `cluster_session` executes them.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingMixIn, UnixStreamServer
from typing import TypeAlias

import msgspec

from emulator.scenario.errors import UserError
from emulator.trace.values import ProcessState

SOCKET = "control.sock"
PATIENCE_S = 120.0
"""Long enough for the end of a cluster: brokers shut down in an orderly way, and traces are
merged."""
_READ_S, _REQUEST_MAX = 5.0, 1 << 20


class Apply(msgspec.Struct, frozen=True, tag="apply"):
    """Apply an action, given as words; `for_us`: undo it after this time (0: never)."""

    words: list[str]
    for_us: int = 0


class Heal(msgspec.Struct, frozen=True, tag="heal"):
    """End the current faults, or those that match the words."""

    words: list[str] = []


class Status(msgspec.Struct, frozen=True, tag="status"):
    """Report the cluster's status."""


class Down(msgspec.Struct, frozen=True, tag="down"):
    """End the cluster. The response is sent when its run is written."""


ControlRequest: TypeAlias = Apply | Heal | Status | Down


class BrokerStatus(msgspec.Struct, frozen=True):
    """`host`: `process`, `container`, or real Kafka with its version."""

    broker: int
    host: str
    address: str
    state: ProcessState


class ClusterStatus(msgspec.Struct, frozen=True):
    """`up_s`: seconds since the cluster was up. `controller`: according to the brokers; None if
    they report none. `faults`: the current ones as words."""

    run: str
    up_s: float
    zookeeper: str
    bootstrap: str
    controller: int | None
    brokers: list[BrokerStatus]
    faults: list[str]


class ControlResponse(msgspec.Struct, frozen=True, omit_defaults=True):
    """`error`: why the request was refused; otherwise the actions that were applied, or the
    status."""

    text: str = ""
    error: str = ""
    status: ClusterStatus | None = None


class ClusterUnreachable(UserError):
    """No cluster answers in this run directory."""


class ControlSocket:
    """The server side. Use as a context manager; leaving it waits for pending responses."""

    def __init__(self, folder: Path, respond: Callable[[ControlRequest], ControlResponse]) -> None:
        """`respond` is called on a separate thread for each connection."""

        class Handler(StreamRequestHandler):
            timeout = _READ_S

            def handle(self) -> None:
                try:
                    line = self.rfile.readline(_REQUEST_MAX)
                    request = msgspec.json.decode(line, type=ControlRequest)
                except (OSError, msgspec.DecodeError):
                    return
                try:
                    response = respond(request)
                except UserError as error:
                    response = ControlResponse(error=str(error))
                try:
                    self.wfile.write(msgspec.json.encode(response) + b"\n")
                except OSError:
                    pass  # the client was interrupted and no longer waits

        self._path = folder / SOCKET
        self._server = _Server(str(self._path), Handler, bind_and_activate=False)
        # Through a descriptor, because the path of a socket is limited to 107 bytes.
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            self._server.socket.bind(_socket_path(descriptor))
            # Nobody can connect before this, because connections are refused until listen().
            self._path.chmod(0o600)
            self._server.server_activate()
        except BaseException:
            self._server.server_close()
            raise
        finally:
            os.close(descriptor)
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.05,), name="control", daemon=True
        )

    def __enter__(self) -> ControlSocket:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._path.unlink(missing_ok=True)
        self._server.server_close()


class _Server(ThreadingMixIn, UnixStreamServer):
    daemon_threads = False
    block_on_close = True


def request_of(run: Path, request: ControlRequest) -> ControlResponse:
    """Send a request to the cluster of a run directory. Raises UserError if the cluster refuses
    it, and ClusterUnreachable."""
    try:
        descriptor = os.open(run, os.O_RDONLY)
        try:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.settimeout(PATIENCE_S)
                connection.connect(_socket_path(descriptor))
                connection.sendall(msgspec.json.encode(request) + b"\n")
                with connection.makefile("rb") as stream:
                    line = stream.readline()
        finally:
            os.close(descriptor)
    except TimeoutError:
        raise ClusterUnreachable(f"{run}: no answer for {PATIENCE_S:g} s") from None
    except OSError:
        line = b""
    if not line:
        raise ClusterUnreachable(f"{run}: the cluster of this run is not up (isr cluster up)")
    response = msgspec.json.decode(line, type=ControlResponse)
    if response.error:
        raise UserError(response.error)
    return response


def _socket_path(descriptor: int) -> str:
    return f"/proc/self/fd/{descriptor}/{SOCKET}"
