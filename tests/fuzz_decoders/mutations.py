"""Hostile input: valid input, mutated according to its structure.

Bytes get other lengths, ends and pieces of a neighbour; JSON and YAML other values at any place of
the document, and lines are dropped, repeated and exchanged.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import yaml
from hypothesis import strategies as st

Mutation = Callable[[bytes], st.SearchStrategy[bytes]]

_NUMBERS = [-(1 << 63), -(1 << 31), -2, -1, 0, 1, 255, 1 << 15, (1 << 31) - 1, (1 << 63) - 1]
_FIELDS = [
    *(number.to_bytes(size, "big", signed=True) for size in (4, 8) for number in (-77, -1, 0, 1)),
    b"\x7f\xff\xff\xff",
    b"\x80\0\0\0",
    b"\x7f\xff",
    b"\x80\0",
    b"\xff" * 10,
    b"\0",
]
_TEXTS = ["", "\0", "é", "²", "\ud800", "-1", "nan", "1e999", "../..", "9" * 5000, "x" * 70_000]
_VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([*_NUMBERS, 1 << 64, 10**30, 1e308, 0.5]),
    st.sampled_from(_TEXTS),
    st.sampled_from([[], {}, [[]], [None], {"": None}]),
)
_NUMBER = re.compile(rb"\d+")
_NESTED = [b"[" * 100_000, b'{"a":' * 100_000, b"- " * 50_000, b"{a: " * 50_000]
_LAUGHS = b"a0: &a0 [x, x]\n" + b"".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n".encode() for n in range(1, 12)
)
"""Eleven levels of aliases: 31 billion texts, when they are followed."""

_YAML = [
    b"!!python/object/apply:os.getcwd []",
    b"&a [*a]",
    b"!!binary x",
    b"2001-99-99",
    b"<<: [1]",
    b"!!timestamp x",
    b"? [1]\n: 2",
    b"0x" + b"f" * 6000,
    b"1:99999999",
    b"---\n",
    _LAUGHS,
]


def other_bytes(data: bytes) -> st.SearchStrategy[bytes]:
    """Up to four times: bytes replaced, put in, cut off, repeated."""

    @st.composite
    def changed(draw: st.DrawFn) -> bytes:
        mutant = data
        for _ in range(draw(st.integers(1, 4))):
            at = draw(st.integers(0, len(mutant)))
            piece = draw(st.one_of(st.sampled_from(_FIELDS), st.binary(min_size=1, max_size=6)))
            end = draw(st.integers(at, min(len(mutant), at + 64)))
            match draw(st.integers(0, 4)):
                case 0:
                    mutant = mutant[:at] + piece + mutant[at + len(piece) :]
                case 1:
                    mutant = mutant[:at] + piece + mutant[at:]
                case 2:
                    mutant = mutant[:at] + mutant[end:]
                case 3:
                    mutant = mutant[:at]
                case _:
                    mutant = mutant[:end] + mutant[at:end] * draw(st.integers(1, 50)) + mutant[end:]
        return mutant

    return changed()


def other_lines(data: bytes) -> st.SearchStrategy[bytes]:
    """A text with lines dropped, repeated, exchanged or joined, and with other numbers or bytes."""

    @st.composite
    def changed(draw: st.DrawFn) -> bytes:
        lines = data.splitlines(keepends=True) or [b""]
        for _ in range(draw(st.integers(1, 4))):
            at = draw(st.integers(0, len(lines) - 1))
            other = draw(st.integers(0, len(lines) - 1))
            match draw(st.integers(0, 5)):
                case 0 if len(lines) > 1:
                    del lines[at]
                case 1:
                    lines.insert(other, lines[at])
                case 2:
                    lines[at], lines[other] = lines[other], lines[at]
                case 3:
                    lines[at] = lines[at][: draw(st.integers(0, len(lines[at])))] + lines[other]
                case 4 if numbers := list(_NUMBER.finditer(lines[at])):
                    match = draw(st.sampled_from(numbers))
                    number = draw(st.sampled_from([*map(str, _NUMBERS), "99", "", "9" * 5000]))
                    line = lines[at]
                    lines[at] = line[: match.start()] + number.encode() + line[match.end() :]
                case _:
                    lines[at] = draw(other_bytes(lines[at]))
        return b"".join(lines)

    return changed()


@st.composite
def _other_value(draw: st.DrawFn, document: Any) -> Any:
    """Somewhere in a document of lists and mappings, another value, or one fewer, or a new key."""
    inside = isinstance(document, list | dict) and len(document) and draw(st.integers(0, 9)) < 9
    if not inside:
        return draw(_VALUES)
    keys = list(document) if isinstance(document, dict) else list(range(len(document)))
    key = draw(st.sampled_from(keys))
    changed = type(document)(document)
    match draw(st.integers(0, 9)):
        case 0:
            del changed[key]
        case 1 if isinstance(changed, dict):
            changed[draw(st.sampled_from([*keys, "", "x", 1, None]))] = changed[key]
        case 1:
            changed += [changed[key]] * draw(st.integers(1, 9))
        case _:
            changed[key] = draw(_other_value(changed[key]))
    return changed


def other_json(data: bytes) -> st.SearchStrategy[bytes]:
    """Lines of JSON with other values in one of them, or other lines."""

    @st.composite
    def changed(draw: st.DrawFn) -> bytes:
        lines = data.splitlines(keepends=True)
        at = draw(st.integers(0, len(lines) - 1))
        if draw(st.integers(0, 30)) == 0:
            lines[at] = draw(st.sampled_from(_NESTED)) + b"\n"
        else:
            document = json.loads(lines[at])
            for _ in range(draw(st.integers(1, 3))):
                document = draw(_other_value(document))
            lines[at] = json.dumps(document).encode() + b"\n"
        return b"".join(lines)

    return st.one_of(changed(), changed(), other_lines(data))


def other_yaml(data: bytes) -> st.SearchStrategy[bytes]:
    """A YAML document with other values or lines, or unusual features of YAML."""
    document = yaml.safe_load(data)

    @st.composite
    def changed(draw: st.DrawFn) -> bytes:
        mutant = document
        for _ in range(draw(st.integers(1, 3))):
            mutant = draw(_other_value(mutant))
        return str(yaml.safe_dump(mutant, sort_keys=False)).encode("utf-8", "replace")

    @st.composite
    def spiced(draw: st.DrawFn) -> bytes:
        lines = data.splitlines(keepends=True)
        at = draw(st.integers(0, len(lines) - 1))
        spice = draw(st.sampled_from([*_YAML, *_NESTED]))
        key, colon, _ = lines[at].partition(b":")
        lines[at] = (key + colon + b" " if draw(st.booleans()) else b"") + spice + b"\n"
        return b"".join(lines)

    return st.one_of(changed(), changed(), spiced(), other_lines(data))
