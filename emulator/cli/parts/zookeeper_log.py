"""A run's ZooKeeper log as a table and as JSON: sessions by broker, payloads decoded.

Owns how a transaction is shown. `zk.real.txnlog` reads the file format, `zk.client.codec` the
payloads; the trace only shows whether the log is complete.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from rich.table import Table
from rich.text import Text

from emulator.runs.run_directory import TRACE, RunDirectory, find_run
from emulator.scenario.errors import UserError
from emulator.trace.events import ZkTransaction
from emulator.trace.reader import BadTrace, read_events, read_header
from zk import paths
from zk.client import codec, codec_admin
from zk.errors import Code, MalformedZNode
from zk.ops import Transaction
from zk.real.jute import Malformed
from zk.real.txnlog import Entry, read_log

LOG_FOLDER = "version-2"
SIMULATED, EMBEDDED = "simulated", "embedded"


@dataclass(frozen=True)
class TransactionLog:
    """The log of one server, and the broker of each session. `torn`: what is missing."""

    folder: Path
    entries: list[Entry]
    owners: dict[int, int]
    torn: str = ""


@dataclass(frozen=True)
class Selection:
    """A filter for transactions."""

    path: str = ""
    session: int | None = None
    broker: int | None = None

    def has(self, log: TransactionLog, entry: Entry) -> bool:
        """Whether the selection includes this entry."""
        one = entry.transaction
        if self.session is not None and one.session_id != self.session:
            return False
        if self.broker is not None and log.owners.get(one.session_id) != self.broker:
            return False
        touched = (one.path, *one.removed, *(op.path for op in one.ops))
        # A prefix may end within a name: `/a` matches `/a` and `/a/b`, `/a_` matches `/a_1`.
        return not self.path or any(path.startswith(self.path) for path in touched)


# -- reading --------------------------------------------------------------------------------------


def read_run_log(run: str) -> TransactionLog:
    """The log of a run's own server. Raises UserError."""
    directory = find_run(run)
    folder = RunDirectory(directory).zookeeper / LOG_FOLDER
    try:
        server = read_header(directory / TRACE).zookeeper
        if server == SIMULATED:
            raise UserError(f"{directory}: this run was simulated: no server wrote a log")
        if server != EMBEDDED:
            raise UserError(f"{directory}: the log of this run is with its server, {server}")
        if not any(folder.glob("log.*")):
            raise UserError(f"{folder}: no log (the server wrote none, or it was removed)")
        entries = list(read_log(folder))
        events = read_events(directory / TRACE)
        seen = max((it.zxid for it in events if isinstance(it, ZkTransaction)), default=0)
    except (BadTrace, Malformed) as error:
        raise UserError(str(error)) from None
    except OSError as error:
        raise UserError(f"{error.filename}: {error.strerror}") from None
    # A session belongs to the broker whose registration it created.
    owners = {}
    for entry in entries:
        for one in (entry.transaction, *entry.transaction.ops):
            broker = paths.broker_of_path(one.path) if one.op == "create" else None
            if broker is not None:
                owners[entry.transaction.session_id] = broker
    # A log is read up to its first damaged record; the trace shows how far the server went.
    last = entries[-1].transaction.zxid if entries else 0
    ends = f"it ends at zxid {last:#x}, the run saw {seen:#x}"
    return TransactionLog(
        folder, entries, owners, f"{folder}: the log is torn: {ends}" if last < seen else ""
    )


# -- payloads -------------------------------------------------------------------------------------


def payload(path: str, data: bytes | None) -> object:
    """The content of a znode as plain values; None for an unknown path. Raises MalformedZNode."""
    if data is None:
        return None
    decode = next((decode for fits, decode in _CODECS if fits(path)), None)
    return _plain(decode(path, data)) if decode is not None else None


def _plain(value: object) -> object:
    match value:
        case codec.LeaderIsrAndControllerEpoch(it, epoch):
            state = {"leader": it.leader, "leader_epoch": it.leader_epoch, "isr": list(it.isr)}
            return {**state, "controller_epoch": epoch}
        case codec.TopicPartition():
            return str(value)
        case tuple() | list():
            return [_plain(one) for one in value]
        case dict():
            return {str(_plain(key)): _plain(one) for key, one in value.items()}
        case msgspec.Struct():
            return {key: _plain(one) for key, one in msgspec.structs.asdict(value).items() if one}
    return value


_reassignment, _preferred = codec_admin.decode_reassignment, codec.decode_preferred_election


def _is(path: str) -> Callable[[str], bool]:
    return lambda other: other == path


def _child_of(parent: str) -> Callable[[str], bool]:
    return lambda path: paths.parent(path) == parent


_CODECS: tuple[tuple[Callable[[str], object], Callable[[str, bytes], object]], ...] = (
    (paths.partition_of_state_path, lambda path, data: codec.decode_state(path, data, -1)),
    (paths.topic_of_path, codec.decode_topic),
    (_child_of(paths.ISR_CHANGE_NOTIFICATION), codec.decode_isr_change),
    (_child_of(paths.LOG_DIR_EVENT_NOTIFICATION), codec_admin.decode_log_dir_event),
    (_is(paths.CONTROLLER), lambda path, data: codec.decode_controller(data, path)),
    (_is(paths.CONTROLLER_EPOCH), lambda path, data: codec.decode_controller_epoch(data, path)),
    (_is(paths.CLUSTER_ID), lambda path, data: codec_admin.decode_cluster_id(data, path)),
    (_child_of(paths.BROKER_IDS), codec_admin.decode_broker),
    (_is(paths.REASSIGN_PARTITIONS), lambda path, data: _reassignment(data, path)),
    (_is(paths.PREFERRED_REPLICA_ELECTION), lambda path, data: _preferred(data, path)),
    (_child_of(paths.CONFIG_CHANGES), codec_admin.decode_config_change),
    (paths.config_entity_of_path, codec_admin.decode_config),
)


# -- output ---------------------------------------------------------------------------------------


def as_json_line(log: TransactionLog, entry: Entry) -> dict[str, object]:
    """`zxid`, `at_ms`, `session`, `broker`, `cxid`, `op`, and the fields of that operation."""
    one = entry.transaction
    return {
        "zxid": one.zxid,
        "at_ms": entry.at_ms,
        "session": _hex(one.session_id),
        "broker": log.owners.get(one.session_id),
        "cxid": entry.cxid,
        **_fields(one),
    }


def _fields(one: Transaction) -> dict[str, object]:
    fields: dict[str, object] = {"op": one.op}
    if one.path:
        fields["path"] = one.path
    if one.data is not None:
        fields |= {"data": one.data.decode("utf-8", "replace")} | _decoded(one)
    if one.version is not None:
        fields["version"] = one.version
    if one.ephemeral:
        fields["ephemeral"] = True
    if one.code:
        fields |= {"code": one.code, "error": _error(one.code)}
    if one.timeout_ms:
        fields["timeout_ms"] = one.timeout_ms
    if one.removed:
        fields["removed"] = list(one.removed)
    return fields | ({"ops": [_fields(op) for op in one.ops]} if one.ops else {})


def _decoded(one: Transaction) -> dict[str, object]:
    try:
        value = payload(one.path, one.data)
    except MalformedZNode as error:
        return {"malformed": str(error)}
    return {} if value is None else {"payload": value}


def log_table(log: TransactionLog, chosen: Selection) -> Table:
    """One row per transaction, the parts of a multi below it."""
    rows = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for name in ("zxid", "time (UTC)", "session", "operation"):
        rows.add_column(name, no_wrap=True)
    rows.add_column("path", overflow="fold", min_width=24)
    rows.add_column("payload", min_width=20)
    for entry in log.entries:
        if chosen.has(log, entry):
            one = entry.transaction
            at = datetime.fromtimestamp(entry.at_ms / 1000, UTC).strftime("%H:%M:%S.%f")[:-3]
            broker = log.owners.get(one.session_id)
            session = _hex(one.session_id) + ("" if broker is None else f" broker {broker}")
            rows.add_row(*map(Text, (f"{one.zxid:#x}", at, session, *_cells(one))))
            for op in one.ops:
                rows.add_row("", "", "", *map(Text, _cells(op, "  ")))
    return rows


def _cells(one: Transaction, indent: str = "") -> tuple[str, str, str]:
    name = one.op if not one.ephemeral else f"{one.op} ephemeral"
    version = "" if one.version is None else f" v{one.version}"
    decoded = _decoded(one)
    if one.op == "error":
        text = _error(one.code)
    elif one.op == "createSession":
        text = f"time-out {one.timeout_ms} ms"
    elif "malformed" in decoded:
        text = str(decoded["malformed"])
    elif "payload" in decoded:
        text = _words(decoded["payload"])
    else:
        text = "" if one.data is None else one.data.decode("utf-8", "replace")
    return f"{indent}{name}{version}", one.path or " ".join(one.removed), text


def _words(value: object) -> str:
    """`leader 1, isr [1, 3]`: a payload in one line."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {_inner(one)}" for key, one in value.items())
    return ", ".join(map(_inner, value)) if isinstance(value, list) else str(value)


def _inner(value: object) -> str:
    if isinstance(value, dict):
        return f"({_words(value)})"
    return f"[{_words(value)}]" if isinstance(value, list) else str(value)


def _hex(session_id: int) -> str:
    """The format of ZooKeeper's own log."""
    return f"{session_id % (1 << 64):#x}"


def _error(code: int) -> str:
    try:
        return Code(code).name
    except ValueError:
        return str(code)
