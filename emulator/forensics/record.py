"""A scenario on real Kafka as a run like any other: directory, trace, summary, and a recording.

Combines the cluster's notes (actions and requests), ZooKeeper's log, the brokers' logs and client
results. The recording is exported from the trace, like that of an emulated run. It must not know
how a broker is started.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable

from emulator.conformance.actions import ADMINISTRATOR, RETRIES
from emulator.conformance.export import export
from emulator.conformance.recording import Fact, write_recording
from emulator.forensics.assemble import (
    ACTIONS,
    BROKER_LOGS,
    CLIENT_RESULTS,
    REQUESTS,
    Maker,
    Source,
    applied,
    assemble,
)
from emulator.forensics.reading import read_folders
from emulator.kafka.profiles.base import profile_of
from emulator.runs.play import Outcome
from emulator.runs.session import Played, Request, WrittenRun
from emulator.scenario.schema import Scenario
from emulator.trace import events as e
from emulator.trace.events import AnyEvent
from emulator.trace.values import TopicPartition
from emulator.worlds.real_kafka.notes import ActionRecord, RunNotes
from emulator.worlds.real_kafka.release import Release
from emulator.worlds.real_kafka.world import RealKafkaWorld
from emulator.worlds.zk_observer import TracingObserver
from zk import paths
from zk.ops import Multi
from zk.real.txnlog import read_log

OnProgress = Callable[[int, RealKafkaWorld], object]


def record(request: Request, release: Release, on_progress: OnProgress) -> Played:
    """Play on real Kafka. In any case no process keeps running, and the trace so far is kept.
    Exceptions are raised as PlayFailed."""
    with WrittenRun(request) as written:
        folder = written.directory.path
        cluster = RealKafkaWorld(request.scenario, release, folder)
        began_s = time.monotonic()
        interrupted = False
        try:
            written.begin()
            try:
                with cluster:
                    cluster.bring_up()
                    cluster.play(on_progress)
            except KeyboardInterrupt:
                interrupted = True
            for event in trace_of(cluster):
                written.sink.append(event)
            if cluster.notes.up_us:
                settings = settings_of(request.scenario, release)
                exits = exits_of(cluster.notes)
                recording = export(written.events, settings, str(folder), exits, is_play=False)
                write_recording(recording, folder)
            notes = cluster.notes
            outcome = Outcome(
                virtual_us=notes.ended_us - notes.began_us,
                wall_ms=int((time.monotonic() - began_s) * 1000),
                kernel_late_us_max=0 if interrupted else notes.late_us_max,
                interrupted=interrupted,
            )
            return written.finish(outcome)
        except Exception as error:
            raise written.fail() from error
        finally:
            # Keep only the logs and settings of a broker's folder.
            for broker in folder.glob("broker-*"):
                shutil.rmtree(broker / "data", ignore_errors=True)
                (broker / "broker.out").unlink(missing_ok=True)


def settings_of(scenario: Scenario, release: Release) -> Fact:
    """The first line of a recording."""
    zookeeper = scenario.zookeeper
    return {
        "t": None,
        "kind": "settings",
        "kafka": release.version,
        ADMINISTRATOR: RETRIES,
        **scenario.settings,
        "zookeeper.tickTime": zookeeper.tick_time_ms,
        "zookeeper.minSessionTimeout": zookeeper.min_session_timeout_ms,
        "zookeeper.maxSessionTimeout": zookeeper.max_session_timeout_ms,
    }


def exits_of(notes: RunNotes) -> list[Fact]:
    """When the recorder noticed that a process had ended by itself: after a SIGTERM, or because its
    start failed."""
    return [
        {
            "t": (process.at_us - notes.up_us) // 1000,
            "kind": "stimulus",
            "do": "exited",
            "broker": process.broker,
        }
        for process in notes.processes
        if process.noticed and process.at_us <= notes.ended_us
    ]


# -- the trace -------------------------------------------------------------------------------------


def trace_of(cluster: RealKafkaWorld) -> list[AnyEvent]:
    """The trace of a cluster that has ended."""
    notes = cluster.notes
    folders = sorted({log.parent for log in cluster.folder.glob("broker-*/logs/*.log")})
    logs = read_folders(folders) if folders else None
    entries = list(read_log(cluster.zookeeper_log)) if cluster.zookeeper_log.is_dir() else []
    transactions = applied(entries, lambda session: notes.sessions.get(session, ""))
    observed = Maker()
    observer = TracingObserver(observed, lambda _: "")
    for request in notes.requests:
        observed.at_us = request.at_us
        observer.on_request(request.at_us, request.client, request.request)
    sources = [
        _done(notes, profile_of(cluster.release.version)),
        Source(REQUESTS, observed.events),
        transactions,
        *(
            Source(BROKER_LOGS, [event for event in account.events if not _is_superseded(event)])
            for account in (logs.accounts.values() if logs else ())
        ),
        _registered(notes, transactions),
        _client_results(notes),
    ]
    began_us = notes.began_us // 1000 * 1000
    for source in sources:
        source.events = [one for one in source.events if began_us <= one.t <= notes.ended_us]
    return assemble(sources, began_us)


def _done(notes: RunNotes, profile: str) -> Source:
    maker = Maker()
    for action in sorted(notes.actions, key=lambda it: _time_of(notes, it)):
        maker.at_us = _time_of(notes, action)
        maker.emit(e.ActionApplied, action.broker, action.do, action.parameters)
    for process in notes.processes:
        maker.at_us = process.at_us
        if process.state == "starting":
            maker.emit(e.BrokerStarting, process.broker, profile)
        elif process.orderly:
            maker.emit(e.BrokerExited, process.broker)
        maker.emit(e.ProcessStateChanged, process.broker, process.state)
    maker.events.sort(key=lambda event: event.t)
    return Source(ACTIONS, maker.events)


def _time_of(notes: RunNotes, action: ActionRecord) -> int:
    """An action through a client happened when it caused its first request to ZooKeeper."""
    if not action.returned_us:
        return action.at_us
    topic = action.parameters.topic
    for sent in notes.requests:
        if not action.at_us <= sent.at_us <= action.returned_us:
            continue
        operations = sent.request.ops if isinstance(sent.request, Multi) else (sent.request,)
        named = [str(getattr(one, "path", "")) for one in operations]
        if any(paths.is_about(path, topic) for path in named):
            return sent.at_us
    return action.at_us


_SUPERSEDED = (e.BrokerStarting, e.BrokerRegistered, e.BrokerExited)
"""Events that the notes and ZooKeeper's log provide more precisely."""


def _is_superseded(event: AnyEvent) -> bool:
    """Of a process's states, only its log shows when it is up."""
    if isinstance(event, e.ProcessStateChanged):
        return event.state != "up"
    return isinstance(event, _SUPERSEDED)


def _registered(notes: RunNotes, transactions: Source) -> Source:
    """The first registration of each process, when it becomes visible to the cluster."""
    maker = Maker()
    launched = sorted((it.at_us, it.broker) for it in notes.processes if it.state == "starting")
    for event in transactions.events:
        if not isinstance(event, e.ZkTransaction):
            continue
        for op in event.ops or (event,):
            if op.op != "create" or not (op.path or "").startswith("/brokers/ids/"):
                continue
            broker = event.broker
            mine = [at for at, whose in launched if whose == broker and at <= event.t + 1000]
            if mine:
                launched.remove((mine[0], broker))
                maker.at_us = event.t
                maker.emit(e.BrokerRegistered, broker, event.zxid)
    return Source(BROKER_LOGS, maker.events)


def _client_results(notes: RunNotes) -> Source:
    maker = Maker()
    for one in sorted(notes.produced, key=lambda it: it.told_us):
        maker.at_us = one.told_us
        partition = TopicPartition(one.topic, one.partition)
        result = (one.client, partition, one.acks, one.result, one.offset)
        maker.emit(e.RecordsProduced, 0, *result, 1, one.handed_us, one.told_us)
    for read in notes.consumed:
        maker.at_us = read.told_us
        partition = TopicPartition(read.topic, read.partition)
        what = (read.client, partition, read.from_offset, read.to_offset, read.hw)
        maker.emit(e.RecordsConsumed, 0, *what)
    maker.events.sort(key=lambda event: event.t)
    return Source(CLIENT_RESULTS, maker.events)
