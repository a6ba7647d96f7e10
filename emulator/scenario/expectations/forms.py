"""The grammar of expectations: sentences with slots, such as `isr of {partition} becomes {isr}`.

A slot is `{name}` or `{name:kind}`. `KINDS` defines the kinds, each with a regular expression and a
conversion. Other words match literally, with any white space between them. Nothing here knows what
a sentence means.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

import msgspec

from emulator.scenario.units import DURATION, BadDuration, duration_us
from emulator.trace.values import TopicPartition

Amount = tuple[int, int | None]
"""Minimum and maximum (None: unbounded)."""

_ISR = r"\[\s*\d+(?:\s*,\s*\d+)*\s*\]"
_SET = r"\{\s*\d+(?:\s*,\s*\d+)*\s*\}"
_SLOT = re.compile(r"\{(\w+)(?::(\w+))?\}")


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", text))


def _leaders(text: str) -> tuple[int, ...]:
    """`none` is -1, as in the state znode."""
    return tuple(-1 if word == "none" else int(word) for word in re.split(r"\s*->\s*", text))


def _amount(text: str) -> Amount:
    low, *high = _numbers(text)
    if text.startswith("between"):
        return low, high[0]
    if text.startswith("at most"):
        return 0, low
    return (low, None) if text.startswith("at least") else (low, low)


class Kind(NamedTuple):
    """A kind of slot: its pattern, its conversion, and its text in messages (empty: its name)."""

    looks: str
    value: Callable[[str], object]
    sample: str = ""


def _partition(text: str) -> TopicPartition:
    topic, _, number = text.rpartition("-")
    return TopicPartition(topic, int(number))


KINDS: dict[str, Kind] = {
    "partition": Kind(r"[A-Za-z0-9._-]+-\d+", _partition, "TOPIC-N"),
    "topic": Kind(r"[A-Za-z0-9._-]+", str),
    "broker": Kind(r"\d+", int),
    "number": Kind(r"\d+", int),
    "version": Kind(r"v\d+", lambda text: int(text[1:]), "vN"),
    "isr": Kind(_ISR, _numbers, "[1, 2]"),
    "members": Kind(_SET, lambda text: tuple(sorted(_numbers(text))), "{1, 2}"),
    "isrs": Kind(
        rf"{_ISR}(?:\s*->\s*{_ISR})*",
        lambda text: tuple(_numbers(isr) for isr in text.split("->")),
        "[1, 2] -> [1]",
    ),
    "leader": Kind(r"none|\d+", lambda text: _leaders(text)[0], "LEADER|none"),
    "leaders": Kind(r"(?:none|\d+)(?:\s*->\s*(?:none|\d+))*", _leaders, "1 -> none -> 2"),
    "sizes": Kind(
        r"\d+(?:\s*->\s*(?:gone|\d+))*",
        lambda text: _numbers(text.replace("gone", "0")),
        "1 -> 3 -> gone",
    ),
    "amount": Kind(
        r"(?:at least |at most )?\d+|between \d+ and \d+",
        _amount,
        "N|at least N|at most N|between N and M",
    ),
    "duration": Kind(DURATION, duration_us, "5s"),
    "error": Kind(r"[A-Z_]+", str),
}


class Form(msgspec.Struct, frozen=True):
    """One sentence form: its text for messages, and the compiled pattern."""

    shown: str
    pattern: re.Pattern[str]
    slots: dict[str, str]
    """Slot names to kinds of slots."""


def compiled(text: str, words: Mapping[str, tuple[str, ...]]) -> Form:
    """Compile a form from its text; `words` are the check's own kinds: lists of phrases."""
    own = {
        name: Kind("|".join(map(re.escape, phrases)), str, "|".join(phrases))
        for name, phrases in words.items()
    }
    kinds = {**KINDS, **own}
    pieces, slots, place = [], {}, 0
    for slot in _SLOT.finditer(text):
        name, kind = slot[1], slot[2] or slot[1]
        pieces.append(re.escape(text[place : slot.start()]))
        pieces.append(f"(?P<{name}>{kinds[kind].looks})")
        slots[name], place = kind, slot.end()
    pieces.append(re.escape(text[place:]))

    def sample(slot: re.Match[str]) -> str:
        kind = slot[2] or slot[1]
        return kinds[kind].sample or kind.upper()

    return Form(_SLOT.sub(sample, text), re.compile("".join(pieces)), slots)


def matched(form: Form, text: str) -> dict[str, object] | None:
    """The arguments if the text matches this form."""
    match = form.pattern.fullmatch(" ".join(text.split()))
    if match is None:
        return None
    try:
        # A value of the check's own kind stays text.
        return {
            name: KINDS[kind].value(match[name]) if kind in KINDS else match[name]
            for name, kind in form.slots.items()
        }
    except BadDuration:
        return None
