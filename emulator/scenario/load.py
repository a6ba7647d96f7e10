"""Loads a scenario from YAML; errors name file, line and key.

Owns the sections and their order; the modules `cluster`, `timeline` and `expectations` read them.
`docs/scenarios.md` describes the format. The section `hazard` is for the hazards' catalogue.
Nothing here knows a world.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from emulator.scenario.cluster import Cluster, read_cluster, read_hosts, read_topics
from emulator.scenario.document import Item, read_document, read_text
from emulator.scenario.errors import ScenarioError, UserError
from emulator.scenario.expectations.base import mentioned, parse
from emulator.scenario.schema import Expectation, Scenario
from emulator.scenario.settings import overrides
from emulator.scenario.timeline import TimeLine
from emulator.scenario.version import VersionOptions, read_version

AS_WRITTEN = VersionOptions()
KERNEL_LATE_MS = 200
RUN_MAX_US = 7 * 24 * 3_600_000_000
_SECTIONS = (
    "about",
    "profile",
    "guards",
    "propagation",
    "cluster",
    "hosts",
    "topics",
    "workload",
    "faults",
    "run",
    "expect",
    "race_free",
    "kernel_late",
    "hazard",
)


class LoadedScenario(Scenario, frozen=True):
    """A scenario from a file, with the data that only its judgement needs.

    `text` is the file's content; `kernel_late_ms` is the maximum scheduling delay (wall clock) of a
    live run whose verdict counts.
    """

    text: str = ""
    kernel_late_ms: int = KERNEL_LATE_MS


def load(
    path: Path, sets: Iterable[str] = (), chosen: VersionOptions = AS_WRITTEN
) -> LoadedScenario:
    """Load a scenario file, with `KEY=VALUE` settings and a version that override the file's.
    Raises UserError for an invalid file."""
    file = str(path)
    return loads(read_text(path, file), path.name.partition(".")[0], file, sets, chosen)


def loads(
    text: str,
    name: str,
    file: str = "",
    sets: Iterable[str] = (),
    chosen: VersionOptions = AS_WRITTEN,
) -> LoadedScenario:
    """Like `load`, from text; `file` is its name in error messages."""
    document = read_document(file or name, text)
    sections = document.mapping(_SECTIONS)
    if "run" not in sections:
        raise ScenarioError(document.file, document.line, "run", "is missing: how long, as in 30s")
    duration_us = sections["run"].duration()
    if not 0 < duration_us <= RUN_MAX_US:
        sections["run"].fail("more than 0, and a week at most")
    version = read_version(sections, chosen)
    command_line = overrides(tuple(sets))
    cluster = read_cluster(document, sections.get("cluster"), version, command_line)
    line = TimeLine(cluster, duration_us)
    line.steps.extend(read_topics(sections.get("topics"), cluster))
    line.read_workload(sections.get("workload"))
    line.read_faults(sections.get("faults"))
    late, expect = sections.get("kernel_late"), sections.get("expect")
    return LoadedScenario(
        name=name,
        about=" ".join(sections["about"].text().split()) if "about" in sections else "",
        profile=version.profile,
        broker_profiles=cluster.broker_profiles,
        guards=dict(version.guards),
        propagation=version.propagation,
        storage=cluster.storage,
        boots=cluster.boots,
        settings=cluster.settings,
        # A setting on the command line applies to every broker.
        broker_settings={
            broker: {key: value for key, value in settings.items() if key not in command_line}
            for broker, settings in cluster.broker_settings.items()
        },
        zookeeper=cluster.zookeeper,
        hosts=read_hosts(sections.get("hosts"), cluster),
        steps=line.in_order(),
        duration_us=duration_us,
        expectations=tuple(_expectation(one, cluster) for one in expect.items()) if expect else (),
        race_free=sections["race_free"].flag() if "race_free" in sections else False,
        source=document.file,
        text=text,
        kernel_late_ms=late.duration() // 1000 if late else KERNEL_LATE_MS,
    )


# -- expectations ----------------------------------------------------------------------------------


def _expectation(item: Item, cluster: Cluster) -> Expectation:
    """A sentence. YAML parses `notifications: 2` as a mapping, so that is accepted too."""
    if item.is_scalar:
        text = item.text()
    else:
        pairs = item.mapping()
        if len(pairs) != 1:
            item.fail("one sentence in each line of expect")
        ((key, value),) = pairs.items()
        text = f"{key}: {value.text()}"
    try:
        expectation = parse(text)
    except UserError as error:
        item.fail(str(error))
    for kind, argument in mentioned(expectation):
        _check_mentioned(item, kind, argument, cluster)
    return expectation


def _check_mentioned(item: Item, kind: str, value: object, cluster: Cluster) -> None:
    """Check that the brokers, topics and partitions in an expectation exist."""
    match kind, value:
        case "broker", int():
            cluster.check_broker(item, value)
        case "topic", str():
            cluster.check_topic(item, value)
        case "partition", (str() as topic, int() as partition):
            cluster.check_partition(item, topic, partition)
        case (("isr" | "members" | "isrs"), tuple()):
            for one in value:
                for broker in one if isinstance(one, tuple) else (one,):
                    cluster.check_broker(item, broker)
