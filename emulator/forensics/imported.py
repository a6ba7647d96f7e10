"""A folder of a stranger's logs as a run: directory, trace, and a statement of what is not known.

Reads all logs and ZooKeeper's transactions that are there, corrects the brokers' clocks, and writes
`trace.ndjson`, `summary.json` and `import.json`. What is missing is named, never guessed. It must
not know what a line means.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import msgspec

from emulator.forensics.assemble import BROKER_LOGS, Source, add_moments, applied, assemble, owners
from emulator.forensics.clocks import ZOOKEEPER, Clocks, estimate
from emulator.forensics.reading import Reading, read_folder
from emulator.forensics.record import profile_of
from emulator.forensics.requested_states import requested_states
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
"""Where no log says which version ran."""
_MAGIC = b"ZKLG"


class BrokerImport(msgspec.Struct):
    """What was read of one broker. `left_out`: lines of loggers that tell nothing of replication;
    `not_understood`: lines of the others that no sentence fits, by pattern."""

    version: str
    files: list[str]
    lines: int
    understood: int
    missing: list[str]
    left_out: dict[str, int]
    not_understood: dict[str, int]


class Imported(msgspec.Struct):
    """The content of `import.json`. `began_ms`: the moment of the trace's time 0 by the reference
    clock (milliseconds since 1970, as log4j wrote it, taken for UTC)."""

    folder: str
    began_ms: int
    brokers: dict[int, BrokerImport]
    clocks: Clocks
    transactions: int
    unread: dict[str, int]
    unknown: list[str]


_IMPORTED = msgspec.json.Decoder(Imported)


class Result(msgspec.Struct, frozen=True):
    """Where it is kept, and what it is."""

    performed: Played
    imported: Imported


def import_folder(folder: Path, base: Path) -> Result:
    """Raises UserError where there is nothing to import."""
    reading = read_folder(folder)
    unread: Counter[str] = Counter()
    entries = _transactions(folder, unread)
    sources, clocks = _sources(reading, entries)
    events = [event for source in sources for event in source.events]
    if not events:
        raise UserError(f"{folder}: these Kafka logs have no line about replication")
    began_us = min(event.t for event in events) // 1000 * 1000
    trace = assemble(sources, began_us)
    for file in reading.files:
        for what, count in file.unread.items():
            unread[f"{file.path.relative_to(folder)}: {what}"] += count
    missing = reading.missing()
    brokers: dict[int, BrokerImport] = {}
    for broker, account in reading.accounts.items():
        own = [file for file in reading.files if file.broker == broker]
        brokers[broker] = BrokerImport(
            version=account.version,
            files=[str(file.path.relative_to(folder)) for file in own],
            lines=sum(reading.lines[str(file.path)] for file in own),
            understood=account.understood,
            missing=missing.get(broker, []),
            left_out=dict(account.other_loggers.most_common()),
            not_understood=dict(account.not_understood.most_common()),
        )
    imported = Imported(
        folder=str(folder),
        began_ms=began_us // 1000,
        brokers=brokers,
        clocks=clocks,
        transactions=len(entries),
        unread=dict(unread.most_common()),
        unknown=list(_unknown(reading, entries, clocks)),
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
        (written.directory.path / IMPORT).write_bytes(pretty(msgspec.to_builtins(imported)))
        played = written.finish(Outcome(trace[-1].t, 0, 0, interrupted=False))
    return Result(played, imported)


def _sources(reading: Reading, entries: list[Entry]) -> tuple[list[Source], Clocks]:
    """What the brokers said, with their clocks corrected, beside what ZooKeeper applied."""
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
            # By the reference clock; a start says which version starts.
            changed: dict[str, int | str] = {"t": event.t - ahead_us}
            if isinstance(event, e.BrokerStarting):
                changed["profile"] = profile
            corrected.append(msgspec.structs.replace(event, **changed))
        sources.append(Source(BROKER_LOGS, corrected))
    if not entries:
        sources.append(requested_states(sources))
    return sources, clocks


def _transactions(folder: Path, unread: Counter[str]) -> list[Entry]:
    """Of all files that are ZooKeeper's, by zxid; each zxid once."""
    by_zxid: dict[int, Entry] = {}
    for path in sorted(p for p in folder.rglob("log.*") if p.is_file()):
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
    """What follows from what is not there, one sentence each."""
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
    for broker, kinds in reading.missing().items():
        for kind in kinds:
            yield f"broker {broker} has no {kind}.log: {_MEANS[kind]}"
    for broker in _mentioned_brokers(reading, entries):
        yield f"broker {broker} is named by others, but none of its logs is present"
    for file in reading.orphans:
        yield f"{file.name}: no line names its broker; skipped"
    if clocks.contradiction:
        yield f"clocks: {clocks.contradiction}; none was corrected"
    for one in clocks.ahead:
        if one.at_least is None and one.at_most is None:
            yield f"nothing ties the clock of {one.clock} to the others: not corrected"
        elif not one.is_bounded:
            yield f"the clock of {one.clock} is bounded on one side only: correction approximate"


_MEANS = {
    "state-change": "which control requests it received, and what it showed to clients, is unknown",
    "controller": "whether and when it was controller is unknown",
    "server": "its ISR decisions, sessions and starts are unknown",
}


def _mentioned_brokers(reading: Reading, entries: list[Entry]) -> list[int]:
    """Brokers that others replicate with, obey or see alive, and those registered in ZooKeeper."""
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
    """What is known of how a run was imported; None for one that was not."""
    try:
        return decode_untrusted((run / IMPORT).read_bytes(), _IMPORTED)
    except FileNotFoundError:
        return None
    except msgspec.DecodeError as why:
        raise UserError(f"{run / IMPORT}: {why}") from None
