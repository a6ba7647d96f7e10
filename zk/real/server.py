"""A real ZooKeeper server: one that we start (embedded), or the user's own.

Owns addresses, the child JVM with Apache ZooKeeper from pyspark's jars, and a probe: a minimal
client that checks whether a server serves. Knows no kazoo and no emulator.

The port stays bound (but not listening) in this process for the lifetime of the server. So no other
process gets it, even while the server is stopped. Linux allows the JVM to listen on it at the same
time.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Self, TypeVar

import msgspec
import tenacity

from zk.errors import Code
from zk.ops import Create, Delete, GetChildrenNames, Reply, Request
from zk.real import jute
from zk.real.child import Child, disowned_by_forks

T = TypeVar("T")
JAVA_MIN = 17
HOST = "127.0.0.1"
READY_TIMEOUT_MS = 60_000

_JARS = ("zookeeper-[0-9]*", "zookeeper-jute-*", "slf4j-api-*", "log4j-api-*", "log4j-core-*",
         "log4j-slf4j2-impl-*", "metrics-core-*", "snappy-java-*", "audience-annotations-*",
         "commons-cli-*")  # fmt: skip
_JVM_OPTIONS = ("-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
                "-Djava.awt.headless=true", "-Dlog4j2.configurationFile=log4j2.properties",
                "-Dlog4j2.disable.jmx=true", "-Dzookeeper.preAllocSize=1024")  # fmt: skip
_CONFIG = """\
dataDir=./.
clientPort={port}
clientPortAddress={host}
tickTime={tick_ms}
minSessionTimeout={min_ms}
maxSessionTimeout={max_ms}
maxClientCnxns=0
admin.enableServer=false
4lw.commands.whitelist=*
"""
_LOG_CONFIG = """\
status = error
appender.file.type = File
appender.file.name = file
appender.file.fileName = zookeeper.log
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{ISO8601} %-5p [%t] %c{1} - %m%n
rootLogger.level = info
rootLogger.appenderRef.file.ref = file
"""


class ServerError(Exception):
    """A ZooKeeper server is not usable; the message is one line for the user."""


class BadAddress(ServerError):
    """The text is not `HOST:PORT[,HOST:PORT...][/chroot]`."""


class JavaNotFound(ServerError):
    """No sufficiently new Java."""


class AddressInUse(ServerError):
    """The requested port is in use."""


class StartFailed(ServerError):
    """The embedded server ended by itself; the message has the last error in its log."""


class NotReady(ServerError):
    """The server did not serve within the timeout; the message has the last error."""


class NoRights(ServerError):
    """The server does not allow us to create the chroot."""


class SessionTimeoutClamped(ServerError):
    """The server would grant another session timeout than the requested one."""

    def __init__(self, requested_ms: int, granted_ms: int) -> None:
        super().__init__(
            f"session time-out {requested_ms} ms asked, the server grants {granted_ms} ms "
            "(its bounds are 2 and 20 times tickTime unless set)"
        )
        self.requested_ms, self.granted_ms = requested_ms, granted_ms


class Address(msgspec.Struct, frozen=True):
    """The address of a ZooKeeper service: servers in order, and the chroot ("" for none)."""

    servers: tuple[tuple[str, int], ...]
    chroot: str = ""

    @property
    def hosts(self) -> str:
        """`host:port,host:port`, as for clients."""
        return ",".join(f"[{h}]:{p}" if ":" in h else f"{h}:{p}" for h, p in self.servers)

    def __str__(self) -> str:
        return self.hosts + self.chroot


_SERVER = re.compile(r"(?:\[(?P<v6>[0-9A-Fa-f:.]+)\]|(?P<host>[^\s:\[\]/,]+)):(?P<port>[0-9]{1,5})")


def parse_address(text: str) -> Address:
    """Parse `HOST:PORT[,HOST:PORT...][/chroot]`, like Kafka's `zookeeper.connect`, but with
    required ports.

    Raises BadAddress.
    """
    hosts, slash, chroot = text.strip().partition("/")
    servers = []
    for part in map(str.strip, hosts.split(",")):
        server = _SERVER.fullmatch(part)
        if not server or not 0 < int(server["port"]) < 65_536:
            raise BadAddress(f"{text!r}: {part!r} is not HOST:PORT")
        servers.append((server["v6"] or server["host"], int(server["port"])))
    names = chroot.rstrip("/").split("/") if slash and chroot.strip("/") else []
    if any(name in ("", ".", "..") or "," in name for name in names):
        raise BadAddress(f"{text!r}: the chroot stands once, at the end, as /name[/name...]")
    return Address(tuple(servers), "".join(f"/{name}" for name in names))


# ---- the probe ----


class Probe:
    """One short session on one server, over a plain socket. As a context manager it closes the
    socket in the end. Raises OSError or jute.Malformed."""

    def __init__(self, server: tuple[str, int], session_timeout_ms: int, patience_s: float) -> None:
        self._xid = 0
        self._socket = socket.create_connection(server, patience_s)
        try:
            request = jute.ConnectRequest(0, session_timeout_ms, 0)
            self._send(jute.encode_connect(request))
            self.granted_ms = jute.decode_connected(self._receive()).timeout_ms
        except BaseException:
            self._socket.close()
            raise

    def create(self, path: str) -> Code:
        """Create an empty persistent znode; the result code."""
        return self._exchange(Create(path, None)).code

    def delete(self, path: str) -> None:
        """Delete a znode and everything below it."""
        for child in self._exchange(GetChildrenNames(path)).children:
            self.delete(f"{path}/{child}")
        self._exchange(Delete(path))

    def _exchange(self, request: Request) -> Reply:
        self._xid += 1
        self._send(jute.encode_request(self._xid, request))
        return jute.decode_reply(request, self._receive())

    def close(self) -> None:
        """Close the session, and wait for the response."""
        self._send(jute.encode_close(self._xid + 1))
        self._receive()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def _send(self, message: bytes) -> None:
        self._socket.sendall(jute.frame(message))

    def _receive(self) -> bytes:
        return self._exactly(jute.Reader(self._exactly(4)).int32())

    def _exactly(self, length: int) -> bytes:
        data = b""
        while len(data) < length:
            chunk = self._socket.recv(length - len(data))
            if not chunk:
                raise ConnectionError("the server closed the connection")
            data += chunk
        return data


def _probe(
    address: Address, timeout_ms: int, session_timeout_ms: int, use: Callable[[Probe], T]
) -> T:
    """The result of `use`, in a session on the first server that serves within `timeout_ms`. A
    session that is not answered to its end is repeated: a busy server may open it at once and take
    seconds to close it. So `use` must be able to run twice. Raises NotReady."""
    for attempt in _patiently(timeout_ms, f"no ZooKeeper server at {address.hosts}"):
        with attempt:
            turn = attempt.retry_state.attempt_number - 1
            server = address.servers[turn % len(address.servers)]
            with Probe(server, session_timeout_ms, min(timeout_ms / 1000, 5.0)) as probe:
                result = use(probe)
                probe.close()
    return result


def _patiently(timeout_ms: int, what: str) -> Iterator[tenacity.AttemptManager]:
    """Attempts until one succeeds or fails for another reason than the network. Raises NotReady
    with the last error."""

    def give_up(state: tenacity.RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome else None
        waited = f"after {timeout_ms / 1000:g} s"
        raise NotReady(f"{what} {waited}: {error or 'no answer'}") from error

    return iter(
        tenacity.Retrying(
            stop=tenacity.stop_after_delay(timeout_ms / 1000),
            wait=tenacity.wait_exponential(multiplier=0.02, max=0.25),
            retry=tenacity.retry_if_exception_type((OSError, jute.Malformed)),
            retry_error_callback=give_up,
        )
    )


def wait_until_ready(address: Address, timeout_ms: int = READY_TIMEOUT_MS) -> None:
    """Return when a session can be opened. This is a complete handshake, because a bare connect can
    end the start-up of ZooKeeper 3.5. Raises NotReady with the last error."""
    _probe(address, timeout_ms, 10_000, lambda _: None)


def require_session_timeout(address: Address, requested_ms: int, timeout_ms: int = 10_000) -> None:
    """Raise SessionTimeoutClamped if the server grants another session timeout. Raises NotReady."""
    granted_ms = _probe(address, timeout_ms, requested_ms, lambda probe: probe.granted_ms)
    if granted_ms != requested_ms:
        raise SessionTimeoutClamped(requested_ms, granted_ms)


def ensure_chroot(address: Address, timeout_ms: int = 10_000) -> None:
    """Create missing znodes of the chroot in a separate session (as KafkaServer@2.6.3 initZkClient
    does). Raises NoRights, NotReady, ServerError."""
    names = address.chroot.split("/")[1:]
    if not names:
        return
    paths = ["/" + "/".join(names[: depth + 1]) for depth in range(len(names))]
    codes = _probe(address, timeout_ms, 10_000, lambda probe: [probe.create(p) for p in paths])
    for path, code in zip(paths, codes, strict=True):
        if code == Code.NO_AUTH:
            raise NoRights(f"no rights to create the chroot {path} at {address.hosts}")
        if code not in (Code.OK, Code.NODE_EXISTS):
            raise ServerError(f"creating the chroot {path} at {address.hosts}: error {code}")


def remove_chroot(address: Address, timeout_ms: int = 10_000) -> None:
    """Delete the chroot's last znode and everything below it. Raises NotReady."""
    _probe(address, timeout_ms, 10_000, lambda probe: probe.delete(address.chroot))


def wait_until_serving(
    server: tuple[str, int], timeout_ms: int, what: str, require_alive: Callable[[], None]
) -> None:
    """Wait until one of our own servers reports its mode. A connect is not enough, because the
    server listens before it has read its data. Raises NotReady, and what `require_alive` raises if
    it ended."""
    for attempt in _patiently(timeout_ms, f"{what} is not ready"):
        with attempt:
            require_alive()
            if "Mode:" not in four_letter_word(server, "srvr"):
                raise ConnectionError("it answers, but does not serve yet")


def four_letter_word(server: tuple[str, int], word: str) -> str:
    """A server's response to `srvr`, `ruok`, `cons` ... Raises OSError."""
    with socket.create_connection(server, 2.0) as connection:
        connection.sendall(word.encode())
        answer = b"".join(iter(lambda: connection.recv(4096), b""))
    return answer.decode(errors="replace")


# ---- Java and the jars ----


def find_java() -> str:
    """The path of a `java` of version 17 or newer, from JAVA_HOME or else PATH. Raises
    JavaNotFound."""
    home = os.environ.get("JAVA_HOME")
    candidates = [home and shutil.which("java", path=f"{home}/bin"), shutil.which("java")]
    seen = []
    for java in filter(None, candidates):
        version = _java_version(java)
        if version >= JAVA_MIN:
            return java
        seen.append(f"{java} is version {version or 'unknown'}")
    versions = "; ".join(seen) or "none in JAVA_HOME or PATH"
    raise JavaNotFound(
        f"Java {JAVA_MIN} or newer is needed: {versions}; install it, or let JAVA_HOME name it"
    )


@functools.cache
def _java_version(java: str) -> int:
    try:
        command = [java, "-version"]
        answer = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return 0
    # Java 8 calls itself 1.8; the version is on standard error.
    version = re.search(r'version "(?:1\.)?(\d+)', answer.stderr)
    return int(version[1]) if version else 0


@functools.cache
def class_path() -> str:
    """The server's jars, found in pyspark without importing it. Raises ServerError."""
    spec = importlib.util.find_spec("pyspark")
    folders = list(spec.submodule_search_locations or ()) if spec else []
    jars = [str(jar) for name in _JARS for f in folders for jar in Path(f).glob(f"jars/{name}.jar")]
    if len(jars) < len(_JARS):
        raise ServerError("the pyspark package with ZooKeeper's jars is missing or incomplete")
    return ":".join(jars)


# ---- the embedded server ----


class EmbeddedServer:
    """Apache ZooKeeper as a child process on loopback, with its data in `data_dir`; it serves after
    `start()`.

    As a context manager it starts the server, and always closes it. Session timeouts are limited to
    [2, 20] × `tick_ms` by default. `force_sync` is ZooKeeper's `forceSync`: "yes" makes every write
    wait for the disk. Not thread-safe: one thread owns it.
    """

    def __init__(
        self,
        data_dir: Path,
        tick_ms: int = 2000,
        min_session_timeout_ms: int | None = None,
        max_session_timeout_ms: int | None = None,
        *,
        port: int = 0,
        force_sync: str = "no",
    ) -> None:
        """Raises AddressInUse if `port` is in use."""
        self.data_dir = data_dir
        self.tick_ms = tick_ms
        self.min_session_timeout_ms = min_session_timeout_ms or 2 * tick_ms
        self.max_session_timeout_ms = max_session_timeout_ms or 20 * tick_ms
        self._force_sync = force_sync
        self._jvm: Child | None = None
        self._reservation = reserve(port)
        self.port: int = self._reservation.getsockname()[1]
        disowned_by_forks(self)

    @property
    def address(self) -> Address:
        return Address(((HOST, self.port),))

    @property
    def pid(self) -> int:
        """The process id of the JVM; 0 if there is none."""
        return self._jvm.pid if self._jvm else 0

    @property
    def log_file(self) -> Path:
        return self.data_dir / "zookeeper.log"

    @property
    def txn_log_dir(self) -> Path:
        """The directory of the server's own transaction log (see `zk.real.txnlog`)."""
        return self.data_dir / "version-2"

    @property
    def is_started(self) -> bool:
        """Whether it was started, and not stopped since."""
        return self._jvm is not None

    def start(self, timeout_ms: int = READY_TIMEOUT_MS) -> None:
        """Start the JVM on the existing data, and return when it serves. Raises JavaNotFound,
        StartFailed or NotReady after stopping it."""
        self.launch()
        try:
            wait_until_serving(
                (HOST, self.port),
                timeout_ms,
                "the embedded ZooKeeper server",
                partial(self.require_alive, "did not start"),
            )
        except BaseException:
            self.stop()
            raise

    def launch(self) -> None:
        """Start the JVM without waiting. Raises JavaNotFound."""
        assert self._jvm is None, "already started"
        command = [
            find_java(),
            *_JVM_OPTIONS,
            f"-Dzookeeper.forceSync={self._force_sync}",
            "-cp",
            class_path(),
            "org.apache.zookeeper.server.ZooKeeperServerMain",
            "./zoo.cfg",
        ]
        # Paths in both files are relative to the data directory, whose name may need escaping.
        self.data_dir.mkdir(parents=True, exist_ok=True)
        config = _CONFIG.format(
            host=HOST,
            port=self.port,
            tick_ms=self.tick_ms,
            min_ms=self.min_session_timeout_ms,
            max_ms=self.max_session_timeout_ms,
        )
        (self.data_dir / "zoo.cfg").write_text(config)
        (self.data_dir / "log4j2.properties").write_text(_LOG_CONFIG)
        self._jvm = Child(command, self.data_dir, self.data_dir / "server.out")

    def stop(self) -> None:
        """Kill the JVM; data and port stay for the next `start()`. Every acknowledged write is in
        the log, so SIGKILL loses none."""
        jvm, self._jvm = self._jvm, None
        if jvm is not None:
            jvm.kill()

    def close(self) -> None:
        """Stop, and release the port."""
        self.stop()
        self._reservation.close()

    def pause(self) -> None:
        """SIGSTOP: sockets stay open, no response is sent, no session expires."""
        self._running().signal(signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT. Sessions that timed out meanwhile expire at the next tick."""
        self._running().signal(signal.SIGCONT)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def require_alive(self, problem: str = "has ended") -> None:
        """Raise StartFailed if the JVM has ended by itself."""
        if self._jvm is None or not self._jvm.has_ended:
            return
        log = _lines(self.log_file)
        errors = [
            line for line in log if re.match(r"(Caused by: )?[\w.$]+(Exception|Error)\b", line)
        ]
        words = errors or _lines(self.data_dir / "server.out") or log or ["no word in its log"]
        raise StartFailed(f"the ZooKeeper server {problem}: {words[-1].strip()}")

    def _running(self) -> Child:
        assert self._jvm is not None, "not started"
        return self._jvm

    def disown(self) -> None:
        """In a forked child the server belongs to the parent (zk.real.child.Owner)."""
        self._jvm = None
        self._reservation.close()


def reserve(port: int) -> socket.socket:
    """A bound socket that does not listen: reserves the port for a process that uses
    SO_REUSEADDR."""
    reservation = socket.socket()
    reservation.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        reservation.bind((HOST, port))
    except OSError as error:
        reservation.close()
        raise AddressInUse(f"address in use: {HOST}:{port} ({error.strerror})") from error
    return reservation


def _lines(path: Path) -> list[str]:
    return path.read_text(errors="replace").splitlines() if path.exists() else []
