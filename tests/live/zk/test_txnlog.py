"""The server's own log, as we read it and as the server's own tool prints it."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.live.zk.owner import QUICK, Owner, connect, start_unwatched
from zk.ops import (
    Check,
    Create,
    CreateMode,
    Delete,
    Exists,
    Multi,
    SessionState,
    SetData,
    Transaction,
)
from zk.real.jute import Malformed
from zk.real.kazoo_service import KazooService
from zk.real.server import EmbeddedServer, class_path, find_java
from zk.real.txnlog import Entry, read_file, read_log

pytestmark = pytest.mark.live

TOOL = "org.apache.zookeeper.server.persistence.TxnLogToolkit"


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """A log with one of each, from two runs of a server; and the session that wrote it."""
    folder = tmp_path_factory.mktemp("log")
    with EmbeddedServer(folder, max_session_timeout_ms=60_000) as server:
        service = KazooService(server.address, QUICK)
        owner = Owner()
        session = connect(service, owner, timeout_ms=10_000)
        owner.ask(
            session,
            Create("/a", "größer".encode()),
            Create("/a", None),
            Create("/n", None),
            SetData("/a", b"", 0),
            SetData("/a", b"x", 7),
            Multi((Check("/a", 1), SetData("/a", b"m", 1), Delete("/n"))),
            Multi((Create("/z", b""), Check("/a", 9), Create("/y", b""))),
            Exists("/a"),
        )
        server.stop()
        owner.until_state(SessionState.DISCONNECTED)
        start_unwatched(server, service, "broker-1")
        owner.until_state(SessionState.CONNECTED)
        owner.ask(session, *[Create("/e-", b"", CreateMode.EPHEMERAL_SEQUENTIAL)] * 2)
        number = session.session_id
        session.close()
        owner.until_state(SessionState.CLOSED)
        service.close()
    return folder / "version-2", number


def test_one_of_each(log: tuple[Path, int]) -> None:
    folder, me = log
    entries = list(read_log(folder))
    assert [entry.transaction.zxid for entry in entries] == list(range(1, len(entries) + 1))

    def wrote(zxid: int, op: str, path: str = "", **more: object) -> Transaction:
        return Transaction(zxid, me, op, path, **more)  # type: ignore[arg-type]

    parts = (
        wrote(7, "check", "/a", version=2),
        wrote(7, "setData", "/a", data=b"m", version=2),
        wrote(7, "delete", "/n"),
    )
    undone = (
        wrote(8, "create", "/z", data=b""),
        wrote(8, "error", code=-103),
        wrote(8, "error", code=-2),
    )
    last = ("/e-0000000002", "/e-0000000003")
    transactions = [entry.transaction for entry in entries]
    assert [one for one in transactions if one.op != "closeSession"] == [
        wrote(1, "createSession", timeout_ms=10_000),
        wrote(2, "create", "/a", data="größer".encode()),
        wrote(3, "error", code=-110),
        wrote(4, "create", "/n"),
        wrote(5, "setData", "/a", data=b"", version=1),
        wrote(6, "error", code=-103),
        wrote(7, "multi", ops=parts),
        wrote(8, "multi", ops=undone),
        wrote(9, "create", last[0], data=b"", ephemeral=True),
        wrote(10, "create", last[1], data=b"", ephemeral=True),
    ]
    assert (transactions[-1].op, set(transactions[-1].removed)) == ("closeSession", set(last))


def test_the_servers_own_tool_reads_the_same(log: tuple[Path, int]) -> None:
    folder, _ = log
    ours = [_as_the_tool_prints(entry) for entry in read_log(folder)]
    assert ours == [line for path in _files(folder) for line in _tool(path)]
    assert {"create", "setData", "multi", "error", "closeSession"} < {one[3] for one in ours}


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob("log.*"), key=lambda path: int(path.suffix[1:], 16))


def _tool(path: Path) -> list[tuple[int, int, int, str, str]]:
    """Session, cxid, zxid, operation, and the path, time-out or code behind it."""
    command = [find_java(), "-cp", class_path(), TOOL, "-d", str(path)]
    said = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    line = r"session 0x(\w+) cxid 0x(\w+) zxid 0x(\w+) (\w+) ?([^,\s]*)"
    numbers = re.findall(line, said)
    return [
        (_signed(session), int(cxid, 16), int(zxid, 16), op, "" if op in SILENT else what)
        for session, cxid, zxid, op, what in numbers
    ]


SILENT = ("multi", "closeSession")


def _signed(hexadecimal: str) -> int:
    return (int(hexadecimal, 16) + (1 << 63)) % (1 << 64) - (1 << 63)


def _as_the_tool_prints(entry: Entry) -> tuple[int, int, int, str, str]:
    one = entry.transaction
    what = {"createSession": str(one.timeout_ms), "error": str(one.code)}.get(one.op, one.path)
    return one.session_id, entry.cxid, one.zxid, one.op, what


def test_a_torn_tail_ends_the_log_wherever_it_is_torn(
    log: tuple[Path, int], tmp_path: Path
) -> None:
    whole = _files(log[0])[0]
    entries = list(read_file(whole))
    data = whole.read_bytes().rstrip(b"\0")
    torn = tmp_path / whole.name
    counts = []
    for length in range(len(data) + 1):
        torn.write_bytes(data[:length])
        read = list(read_file(torn))
        assert read == entries[: len(read)]
        counts.append(len(read))
    assert counts == sorted(counts)
    assert counts[-1] == len(entries)
    torn.write_bytes(data[:-20] + b"\0" * 20)
    assert list(read_file(torn)) == entries[:-1]


def test_what_is_no_log_is_said_to_be_none(log: tuple[Path, int], tmp_path: Path) -> None:
    other = tmp_path / "log.1"
    other.write_bytes(b"ZKSN" + bytes(40))
    with pytest.raises(Malformed, match=r"log\.1: not a ZooKeeper transaction log of version 2"):
        list(read_file(other))
    shutil.copy(_files(log[0])[0], tmp_path / "log.copy")
    other.unlink()
    with pytest.raises(Malformed, match=r"log\.copy: no zxid in its name"):
        list(read_log(tmp_path))
