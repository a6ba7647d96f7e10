"""Adds a stored run to a data set: its trace, and the log of its ZooKeeper server.

Owns reading a stored run back as rows. A run that is already in the data set is not changed; its
log is stored beside its events. `zk.real.txnlog` reads the log file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from emulator.analysis.dataset import EVENTS, RunKey
from emulator.analysis.sweep.recording import key_of
from emulator.analysis.writer import setting_of, write_piece, write_run
from emulator.runs import dataset_rows as rows
from emulator.runs.replay import about_run, scenario_of
from emulator.runs.run_directory import SUMMARY, TRACE
from emulator.runs.summary import Summary
from emulator.scenario.errors import UserError
from emulator.trace.events import ZkTransaction
from emulator.trace.reader import read_events
from emulator.trace.rows import ZkLogged
from emulator.trace.untrusted_json import decode_untrusted
from emulator.trace.values import LoggedOp
from zk.real.txnlog import Entry

LOG = "zookeeper-log.parquet"
_SUMMARY = msgspec.json.Decoder(Summary)


def add_log(
    directory: Path, base: Path, entries: Sequence[Entry], owners: Mapping[int, int]
) -> RunKey:
    """Add the log of a run's server up to the last traced transaction (later ones close the run's
    sessions), and the run itself if it is missing. UserError."""
    directory = directory.resolve()
    about = about_run(directory)
    scenario = scenario_of(directory, about)
    key = key_of(scenario, directory.name)
    began = rows.began(
        scenario, about.seed, zookeeper=about.zookeeper, sets=about.set, replay=about.repeat
    )
    if not (base / EVENTS / key.directory).exists():
        file = directory / SUMMARY
        try:
            summary = decode_untrusted(file.read_bytes(), _SUMMARY)
        except (OSError, msgspec.DecodeError):
            raise UserError(
                f"{file}: missing or unreadable: the run was killed before its end"
            ) from None
        write_run(base, key, began, read_events(directory / TRACE), rows.ended(summary))
    traced = {
        event.zxid: event.t
        for event in read_events(directory / TRACE)
        if isinstance(event, ZkTransaction)
    }
    last = max(traced, default=0)
    known = [entry for entry in entries if entry.transaction.zxid <= last]
    logged = [_row(entry, owners, traced) for entry in known]
    if logged:
        write_piece(base / EVENTS / key.directory / LOG, logged, setting_of(began))
    return key


def _row(entry: Entry, owners: Mapping[int, int], traced: Mapping[int, int]) -> ZkLogged:
    """`t` is the time of the same transaction in the trace; 0 if the trace lacks it."""
    one = entry.transaction
    return ZkLogged(
        *(-1, traced.get(one.zxid, 0), owners.get(one.session_id, 0), "", -1),
        zxid=one.zxid,
        op=one.op,
        path=one.path or None,
        data=_text(one.data),
        version=one.version,
        ephemeral=one.ephemeral,
        zk_transaction_ops=tuple(
            LoggedOp(
                op.op, op.path or None, _text(op.data), op.version, op.ephemeral, op.code or None
            )
            for op in one.ops
        ),
        code=one.code or None,
        timeout_ms=one.timeout_ms or None,
        removed=one.removed,
        session_id=one.session_id,
        logged_ms=entry.at_ms,
    )


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8", "replace")
