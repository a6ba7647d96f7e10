"""The logs of a recorded cluster as another would have written them: another layout, another
wrapper around each row, one output for all of a broker's logs."""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

_ENTRY = re.compile(
    r"^\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),(\d{3})\] ([A-Z]+) ((?:(?!^\[\d{4}-).)*?)"
    r" \(([\w.$-]+)\)\n((?:(?!\[\d{4}-\d\d-).*\n)*)",
    re.MULTILINE | re.DOTALL,
)


class Entry(NamedTuple):
    """One entry of a log in Kafka's own layout; `trace`: the stack trace behind it."""

    at: dt.datetime
    level: str
    text: str
    logger: str
    trace: str

    def stamp(self, separator: str = " ", decimal: str = ",") -> str:
        return f"{self.at:%Y-%m-%d{separator}%H:%M:%S}{decimal}{self.milli:03}"

    @property
    def milli(self) -> int:
        return self.at.microsecond // 1000


def entries_of(text: str) -> list[Entry]:
    entries = []
    # The pieces between heads: one expression over a whole file would try too much.
    starts = [m.start() for m in re.finditer(r"^\[\d{4}-\d\d-\d\d ", text, re.MULTILINE)]
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        match = _ENTRY.match(text[start:end])
        assert match is not None, text[start:end]
        at = dt.datetime.fromisoformat(f"{match[1]}.{match[2]}+00:00")
        entries.append(Entry(at, match[3], match[4], match[5], match[6]))
    return entries


def by_pattern(form: str, stamp: Callable[[Entry], str] = Entry.stamp) -> Callable[[Entry], str]:
    """A layout from a format of `d`, `p`, `m`, `c`."""

    def lay(one: Entry) -> str:
        text = form.format(d=stamp(one), p=one.level, m=one.text, c=one.logger)
        return f"{text}\n{one.trace}"

    return lay


def east(one: Entry) -> str:
    """In a time zone two hours east."""
    at = one.at.astimezone(dt.timezone(dt.timedelta(hours=2)))
    return f"{at:%Y-%m-%dT%H:%M:%S},{one.milli:03}+02:00"


def json_layout(one: Entry) -> str:
    """log4j2's JsonLayout."""
    second = int(one.at.timestamp())
    values = {
        "instant": {"epochSecond": second, "nanoOfSecond": one.milli * 1_000_000},
        "thread": "main",
        "level": one.level,
        "loggerName": one.logger,
        "message": one.text,
        "endOfBatch": False,
    }
    return json.dumps(values) + "\n"


def ecs_layout(one: Entry) -> str:
    """log4j2's template for Elastic."""
    values = {
        "@timestamp": one.stamp("T", ".") + "Z",
        "log": {"level": one.level, "logger": one.logger},
        "message": one.text,
        "process.thread.name": "main",
    }
    return json.dumps(values) + "\n"


KAFKA = by_pattern("[{d}] {p} {m} ({c})")
STRIMZI = by_pattern("{d} {p} {m} ({c}) [data-plane-kafka-request-handler-3]")


def wrapped(
    inner: Callable[[Entry], str], around: Callable[[Entry, str], str]
) -> Callable[[Entry], str]:
    """Each row of an entry in an envelope."""
    return lambda one: "".join(f"{around(one, row)}\n" for row in inner(one).splitlines())


def docker(one: Entry, row: str) -> str:
    return json.dumps({"log": f"{row}\n", "stream": "stdout", "time": one.stamp("T", ".") + "12Z"})


def journald_json(one: Entry, row: str) -> str:
    micros = str(int(one.at.timestamp()) * 1_000_000)
    return json.dumps({"__REALTIME_TIMESTAMP": micros, "_PID": "7", "MESSAGE": row})


LAYOUTS: dict[str, Callable[[Entry], str]] = {
    "without brackets": by_pattern("{d} {p} {m} ({c})"),
    "ISO date in brackets": by_pattern("[{d}] {p} {m} ({c})", lambda it: it.stamp("T")),
    "ISO date with a zone": by_pattern("{d} {p} {m} ({c})", east),
    "Strimzi": STRIMZI,
    "Confluent for Kubernetes": by_pattern("[{p}] {d} [main] {c} run - {m}"),
    "thread first": by_pattern("{d} [main] {p:5} {c} - {m}"),
    "logger with a colon": by_pattern("{d} {p:5} {c}: {m}"),
    "JsonLayout": json_layout,
    "ECS": ecs_layout,
    "CRI": wrapped(STRIMZI, lambda it, row: f"{it.stamp('T', '.')}123456Z stdout F {row}"),
    "docker": wrapped(KAFKA, docker),
    "kubectl": wrapped(STRIMZI, lambda it, row: f"[pod/kafka-0/kafka] {row}"),
    "syslog 3164": wrapped(KAFKA, lambda it, row: f"<14>{it.at:%b %d %H:%M:%S} h kafka[7]: {row}"),
    "syslog 5424": wrapped(
        KAFKA, lambda it, row: f"<14>1 {it.stamp('T', '.')}Z h kafka 7 - - {row}"
    ),
    "journald short": wrapped(KAFKA, lambda it, row: f"{it.at:%b %d %H:%M:%S} h kafka[7]: {row}"),
    "journald short-iso": wrapped(
        KAFKA, lambda it, row: f"{it.at:%Y-%m-%dT%H:%M:%S}+0000 h java[7]: {row}"
    ),
    "journald json": wrapped(KAFKA, journald_json),
    "syslog 5424, no date inside": wrapped(
        by_pattern("{p} {m} ({c})"), lambda it, row: f"<14>1 {it.stamp('T', '.')}Z h k 7 - - {row}"
    ),
}


def relay(folder: Path, lay: Callable[[Entry], str]) -> Path:
    """Every log of every broker, in this layout."""
    for log in folder.rglob("*.log"):
        log.write_text("".join(map(lay, entries_of(log.read_text()))))
    return folder


def as_containers(folder: Path, lay: Callable[[Entry], str]) -> Path:
    """All logs of a broker in one output, which is not named as any of Kafka's."""
    for broker in folder.glob("broker-*"):
        logs = [broker / f"{kind}.log" for kind in ("state-change", "controller", "server")]
        entries = [one for log in logs for one in entries_of(log.read_text())]
        entries.sort(key=lambda one: one.at)
        for log in logs:
            log.unlink()
        (broker / "0.log").write_text("".join(map(lay, entries)))
    return folder
