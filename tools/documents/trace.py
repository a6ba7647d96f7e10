"""The vocabulary of events as a document: `python -m tools.documents.trace > docs/trace.md`.

Made from the events' own files, so that the document cannot say anything else than the code; a test
holds the one to the other. Knows no particular event.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from itertools import pairwise
from typing import get_args

import msgspec

from emulator.trace import columns
from emulator.trace.event import Event
from emulator.trace.events import AnyEvent
from emulator.trace.reader import SCHEMA_VERSION
from emulator.trace.values import Parameters

_SECTION = re.compile(r"^# -- (.+?) -+$", re.MULTILINE)

_HEAD = f"""# The trace

A trace is `trace.ndjson`: a header line, then one JSON object per event, in order.
Schema version {SCHEMA_VERSION}.

Every event has `kind`, `seq` (its place), `t` (microseconds since the world began; the action
`up` says when the cluster was up), `broker` (0: none), `thread` (Kafka's thread name; empty in
what real Kafka logged) and `cause`
(the `seq` that led to it, -1: none). Fields that have their default are left out. A partition is
`["orders", 0]`.

This file is made from `emulator/trace/events.py` and `alter_isr.py` there, by
`python -m tools.documents.trace`.
"""


def markdown() -> str:
    """The whole document."""
    parts, title = [_HEAD], ""
    for kind in get_args(AnyEvent):
        if _section(kind) != title:
            title = _section(kind)
            parts.append(f"\n## {_title(title)}\n")
        parts.append(_entry(kind))
    return "\n".join([*parts, _parameters(), columns.markdown()])


def _parameters() -> str:
    """What an action says: each field with the text below it."""
    (body,) = (
        c.body for c in ast.parse(inspect.getsource(Parameters)).body if isinstance(c, ast.ClassDef)
    )
    rows = []
    for field, description in pairwise(body):
        if isinstance(field, ast.AnnAssign) and isinstance(description, ast.Expr):
            text = " ".join(ast.literal_eval(description.value).split())
            hint = ast.unparse(field.annotation).replace(" | None", "").replace("|", "or")
            rows.append(f"| `{ast.unparse(field.target)}` | {hint} | {text} |")
    return "\n".join([_PARAMETERS, *rows, ""])


_PARAMETERS = """
## Parameters of an action

One object. It leaves out fields that the action does not have, and defaults.

| field | type | |
|---|---|---|"""


def _section(kind: type[Event]) -> str:
    """The heading above a kind, in its file."""
    source = inspect.getsource(sys.modules[kind.__module__])
    before = source[: source.index(f"class {kind.__name__}(")]
    return str(_SECTION.findall(before)[-1])


def _title(text: str) -> str:
    return text[0].upper() + text[1:]


def _entry(kind: type[Event]) -> str:
    text = " ".join(inspect.cleandoc(kind.__doc__ or "").split())
    hints, written = inspect.get_annotations(kind), msgspec.structs.fields(kind)
    own = [one for one in written if one.name not in _COMMON]
    fields = ", ".join(f"`{one.encode_name}`: {hints[one.name]}" for one in own)
    return f"- **`{kind.__struct_config__.tag}`**: {text}" + (f"  \n  {fields}" if fields else "")


_COMMON = frozenset(Event.__struct_fields__)

if __name__ == "__main__":
    print(markdown())
