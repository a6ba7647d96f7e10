"""Imports a folder of logs as a run: directory, trace, and a list of what is unknown.

Reads all logs and ZooKeeper's transactions, corrects the brokers' clocks, and writes
`trace.ndjson`, `summary.json` and `import.json`. What is missing is named, never guessed. It must
not know what a line means.
"""

from __future__ import annotations

import itertools
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from emulator.forensics.account import Account
from emulator.forensics.assemble import BROKER_LOGS, Source, add_moments, applied, assemble, owners
from emulator.forensics.clocks import ZOOKEEPER, Clocks, estimate
from emulator.forensics.diagnoses.base import Coverage, diagnoses, name_of
from emulator.forensics.findings import Findings, find
from emulator.forensics.log_files import CONTROLLER, KINDS, SERVER, STATE_CHANGE, ReadOptions
from emulator.forensics.reading import Reading, kind_of, read_folders
from emulator.forensics.requested_states import requested_states
from emulator.kafka.profiles.base import profile_of
from emulator.runs.play import Outcome
from emulator.runs.run_directory import pretty
from emulator.runs.session import Played, Request, WrittenRun
from emulator.scenario.errors import UserError
from emulator.scenario.load import LoadedScenario
from emulator.scenario.schema import Boot, ZooKeeperSettings
from emulator.trace import events as e
from emulator.trace.events import AnyEvent
from emulator.trace.untrusted_json import decode_untrusted
from emulator.worlds.real_kafka.release import numbers_of
from emulator.worlds.zk_observer import broker_of
from zk.real.jute import Malformed
from zk.real.txnlog import Entry, read_file

IMPORT = "import.json"
NAME = "import"
TAKEN_FOR = "2.6"
"""The profile if no log has a version."""
EVIDENCE_WIDTH = 300
_MAGIC = b"ZKLG"


class BrokerImport(msgspec.Struct):
    """What was read of one broker. `left_out`: lines of loggers that do not concern replication;
    `not_understood`: lines of other loggers that match no sentence, by pattern."""

    version: str
    files: list[str]
    layouts: list[str]
    lines: int
    understood: int
    missing: list[str]
    left_out: dict[str, int]
    not_understood: dict[str, int]
    has_states: bool = True
    """Its state-change.log has the content of control requests (TRACE)."""


class Imported(msgspec.Struct):
    """The content of `import.json`. `began_ms`: the trace's time 0 by the reference clock
    (milliseconds since 1970, taken for UTC)."""

    folder: str
    began_ms: int
    brokers: dict[int, BrokerImport]
    clocks: Clocks
    transactions: int
    unread: dict[str, int]
    unknown: list[str]
    coverage: Coverage = Coverage()
    absent: list[int] = []
    """Brokers that occur in others' logs, but have no log here."""
    evidence: dict[int, str] = {}
    """The log line, with file and row, of each event on which a diagnosis is based."""


_IMPORTED = msgspec.json.Decoder(Imported)


class Result(msgspec.Struct, frozen=True):
    """The run directory, the import, and the findings."""

    performed: Played
    imported: Imported
    findings: Findings


def import_folders(
    folders: Sequence[Path], base: Path, options: ReadOptions | None = None
) -> Result:
    """Raises UserError if there is nothing to import."""
    reading = read_folders(folders, options)
    unread: Counter[str] = Counter()
    entries = _transactions(folders, unread)
    folder = Path(os.path.commonpath([one.absolute() for one in folders]))
    folder = folders[0] if len(folders) == 1 else folder
    sources, clocks = _sources(reading, entries)
    events = [event for source in sources for event in source.events]
    if not events:
        raise UserError(f"{folder}: these Kafka logs have no line about replication")
    began_us = min(event.t for event in events) // 1000 * 1000
    trace = assemble(sources, began_us)
    for file in reading.files:
        for what, count in file.unread.items():
            unread[f"{_relative(folder, file.path)}: {what}"] += count
    missing = reading.missing()
    brokers: dict[int, BrokerImport] = {}
    for broker, account in reading.accounts.items():
        own = [file for file in reading.files if file.broker == broker]
        brokers[broker] = BrokerImport(
            version=account.version,
            files=[_relative(folder, file.path) for file in own],
            layouts=sorted({file.format.name for file in own if file.format is not None}),
            lines=sum(reading.lines[str(file.path)] for file in own),
            understood=account.understood,
            missing=missing.get(broker, []),
            left_out=dict(account.other_loggers.most_common()),
            not_understood=dict(account.not_understood.most_common()),
            has_states=broker not in reading.without_states,
        )
    imported = Imported(
        folder=str(folder),
        began_ms=began_us // 1000,
        brokers=brokers,
        clocks=clocks,
        transactions=len(entries),
        unread=dict(unread.most_common()),
        unknown=list(_unknown(reading, entries, clocks)),
        absent=_mentioned_brokers(reading, entries),
        coverage=Coverage(
            reading.ended_ms * 1000 - began_us,
            tuple((a * 1000 - began_us, b * 1000 - began_us) for a, b in reading.silences()),
        ),
    )
    request = Request(
        scenario=_scenario(imported),
        seed=0,
        zookeeper=NAME,
        repeat=f"isr import {imported.folder}",
        base=base,
    )
    with WrittenRun(request) as written:
        written.begin()
        for event in trace:
            written.sink.append(event)
        played = written.finish(Outcome(trace[-1].t, 0, 0, interrupted=False))
        findings = find(trace, imported.coverage)
        facts = {fact for case in findings.diagnoses for fact in case.facts}
        imported.evidence = _evidence(reading, [trace[seq] for seq in sorted(facts)], imported)
        (written.directory.path / IMPORT).write_bytes(pretty(msgspec.to_builtins(imported)))
    return Result(played, imported, findings)


def _evidence(reading: Reading, facts: Sequence[AnyEvent], imported: Imported) -> dict[int, str]:
    """The log lines of these events. ZooKeeper's transactions and derived events have none."""
    places: dict[int, tuple[int, int]] = {}
    for broker, account in reading.accounts.items():
        later_us = imported.began_ms * 1000 + imported.clocks.correction_ms(account.clock) * 1000
        mine = {(one.t + later_us, type(one)): one.seq for one in facts if one.broker == broker}
        for event, place in zip(account.events, account.places, strict=True) if mine else ():
            seq = mine.get((event.t, type(event)))
            if seq is not None:
                places.setdefault(seq, place)
    lines: dict[int, str] = {}
    for number in {file for file, _ in places.values()}:
        file = reading.files[number]
        rows = {row: seq for seq, (of, row) in places.items() if of == number}
        last = max(rows)
        for row, text in enumerate(itertools.islice(file.rows(), last), 1):
            if row in rows:
                name = _relative(Path(imported.folder), file.path)
                lines[rows[row]] = f"{name}:{row}: {text[:EVIDENCE_WIDTH]}"
    return dict(sorted(lines.items()))


def not_judged(imported: Imported) -> dict[str, list[str]]:
    """The hazards that could not be judged for every broker, by the missing log."""
    absent = {kind for one in imported.brokers.values() for kind in one.missing}
    absent |= {ZOOKEEPER} if not imported.transactions else set()
    absent |= set(KINDS) if imported.absent else set()
    if not all(one.has_states for one in imported.brokers.values()):
        absent.add(STATE_CHANGE)
    by_source: dict[str, list[str]] = {}
    for diagnosis in diagnoses():
        for source in diagnosis.needs:
            if source in absent:
                by_source.setdefault(_NEEDED[source], []).append(name_of(diagnosis))
                break
    return by_source


_NEEDED = {
    STATE_CHANGE: "a broker's state-change.log is missing, or not at TRACE",
    CONTROLLER: "a broker's controller.log is missing",
    SERVER: "a broker's server.log is missing",
    ZOOKEEPER: "ZooKeeper's transaction log is missing",
}


def _sources(reading: Reading, entries: list[Entry]) -> tuple[list[Source], Clocks]:
    """The brokers' events with corrected clocks, and ZooKeeper's."""
    sessions = owners(entries)
    transactions = applied(entries, lambda session: sessions.get(session, ""))
    add_moments(transactions, reading.causes, ZOOKEEPER)
    names = [account.clock for account in reading.accounts.values()]
    names += [ZOOKEEPER] if entries else []
    clocks = estimate(reading.causes.pairs(), names)
    sources = [transactions]
    for account in reading.accounts.values():
        ahead_us = clocks.correction_ms(account.clock) * 1000
        profile = profile_of(account.version) if account.version else TAKEN_FOR
        corrected: list[AnyEvent] = []
        for event in account.events:
            # By the reference clock; a start whose version is not logged gets the broker's last.
            changed: dict[str, int | str] = {"t": event.t - ahead_us}
            if isinstance(event, e.BrokerStarting) and not event.profile:
                changed["profile"] = profile
            corrected.append(msgspec.structs.replace(event, **changed))
        sources.append(Source(BROKER_LOGS, corrected))
    if not entries:
        sources.append(requested_states(sources))
    return sources, clocks


def _relative(folder: Path, path: Path) -> str:
    return os.path.relpath(path, folder)


def _transactions(folders: Sequence[Path], unread: Counter[str]) -> list[Entry]:
    """All of ZooKeeper's transactions by zxid, without duplicates."""
    by_zxid: dict[int, Entry] = {}
    for path in sorted(p for one in folders for p in one.rglob("log.*") if p.is_file()):
        with path.open("rb") as file:
            if file.read(4) != _MAGIC:
                continue
        try:
            for entry in read_file(path):
                by_zxid.setdefault(entry.transaction.zxid, entry)
        except Malformed as why:
            unread[str(why)] += 1
    return [entry for _, entry in sorted(by_zxid.items())]


def _unknown(reading: Reading, entries: list[Entry], clocks: Clocks) -> Iterator[str]:
    """The consequences of missing logs, one sentence each."""
    versions = {account.version for account in reading.accounts.values() if account.version}
    if len(versions) > 1:
        yield f"brokers ran different versions: {', '.join(sorted(versions))}"
    if not versions:
        yield f"no log names the Kafka version: {TAKEN_FOR} is assumed"
    if not entries:
        yield (
            "no ZooKeeper transaction log: unknown who wrote each state, and which states no broker"
            " logged"
        )
        if any(_names_no_version(account) for account in reading.accounts.values()):
            yield (
                "requests name no versions of states (Kafka up to 0.8.2): states, what was stuck,"
                " and stale metadata are unknown; ZooKeeper's transaction log has them"
            )
    for broker, kinds in reading.missing().items():
        for kind in kinds:
            yield f"broker {broker} has no {kind}.log: {_MEANS[kind]}"
    for broker in _mentioned_brokers(reading, entries):
        yield f"broker {broker} is named by others, but none of its logs is present"
    yield from _not_read(reading)
    if clocks.contradiction:
        yield f"clocks: {clocks.contradiction}; none was corrected"
    for one in clocks.ahead:
        if one.at_least is None and one.at_most is None:
            yield f"nothing ties the clock of {one.clock} to the others: not corrected"
        elif not one.is_bounded:
            yield f"the clock of {one.clock} is bounded on one side only: correction approximate"


def _names_no_version(account: Account) -> bool:
    states = [it.state for it in account.events if isinstance(it, e.LeaderAndIsr)]
    return bool(states) and all(state.zk_version < 0 for state in states)


def _not_read(reading: Reading) -> Iterator[str]:
    """Unreadable parts of files that could have been relevant."""
    for broker in reading.without_states:
        yield (
            f"broker {broker} logs state changes without TRACE: the states in control requests are"
            " unknown (log4j.logger.state.change.logger=TRACE)"
        )
    for broker, account in reading.accounts.items():
        by_logger: Counter[str] = Counter()
        for pattern, count in account.not_understood.items():
            by_logger[pattern.partition(": ")[0]] += count
        for logger, count in by_logger.items():
            yield (
                f"broker {broker}: {count:,} line{'s'[: count > 1]} of {logger} not understood:"
                f" {_MEANS[kind_of(logger)]} where they tell of it"
            )
    for from_ms, to_ms in reading.silences():
        began, ended = (datetime.fromtimestamp(ms / 1000, UTC) for ms in (from_ms, to_ms))
        yield (
            f"no log has a line from {began:%Y-%m-%d %H:%M} to {ended:%Y-%m-%d %H:%M} UTC: what"
            " happened then is unknown"
        )
    for file in reading.files:
        if file.format is None:
            yield f"{file.path}: in no known layout, skipped; it begins {file.first_row[:80]!r}"
        elif file.broker is None:
            yield f"{file.path}: no line names its broker; skipped"


_MEANS = {
    "state-change": "which control requests it received, and what it showed to clients, is unknown",
    "controller": "whether and when it was controller is unknown",
    "server": "its ISR decisions, sessions and starts are unknown",
}


def _mentioned_brokers(reading: Reading, entries: list[Entry]) -> list[int]:
    """Brokers that occur as replicas, controllers or live brokers in others' logs, and those
    registered in ZooKeeper."""
    named = {broker_of(client) for client in owners(entries).values()}
    for account in reading.accounts.values():
        for event in account.events:
            match event:
                case e.LeaderAndIsr():
                    named.update((event.sender, *event.state.replicas))
                case e.BrokerChange():
                    named.update((*event.live, *event.deleted))
    return sorted(one for one in named - set(reading.accounts) if one >= 0)


def _scenario(imported: Imported) -> LoadedScenario:
    """The scenario that a run directory needs; it cannot be played."""
    versions = [it.version for it in imported.brokers.values() if it.version]
    profile = profile_of(max(versions, key=numbers_of)) if versions else TAKEN_FOR
    return LoadedScenario(
        name=NAME,
        about=f"Imported from {imported.folder}.",
        profile=profile,
        boots=tuple(Boot(broker) for broker in imported.brokers),
        settings={},
        broker_settings={},
        zookeeper=ZooKeeperSettings(),
        steps=(),
        duration_us=1,
        text=f"# imported from {imported.folder}: an imported run cannot be played\n",
    )


def read_import(run: Path) -> Imported | None:
    """The content of `import.json`; None if the run was not imported."""
    try:
        return decode_untrusted((run / IMPORT).read_bytes(), _IMPORTED)
    except FileNotFoundError:
        return None
    except msgspec.DecodeError as why:
        raise UserError(f"{run / IMPORT}: {why}") from None
