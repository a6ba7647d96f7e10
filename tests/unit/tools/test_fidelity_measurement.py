"""`make fidelity`: which rows a measurement of some recordings renews."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import msgspec
import pytest

from emulator.conformance.compare import Verdict
from tools.fidelity import __main__ as fidelity
from tools.fidelity.results import RecordingResult

NOT_EQUAL = Verdict(
    recording="r",
    matched=False,
    seeds=5,
    agreeing=(),
    points={},
    agreeing_by_point={},
    nearest_run="",
    nearest_differences={},
    differences=(),
    timings=(),
)


def test_rows_of_recordings_that_are_not_played_now_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    written: dict[str, list[msgspec.Struct]] = {}
    judged_before = RecordingResult(
        kafka="2.6.3",
        recording="random-1",
        commit="c",
        latencies=1,
        seeds=5,
        agreeing=5,
        by_seeds=True,
    )
    gone = msgspec.structs.replace(judged_before, recording="random-9")
    rows = {RecordingResult: [judged_before, gone]}
    monkeypatch.setattr(fidelity, "read_rows", lambda _, kind: rows.get(kind, []))
    monkeypatch.setattr(fidelity, "write_rows", written.__setitem__)
    recorded = [
        fidelity.Case(Path(), "2.6.3", "random-1", "kept-apart"),
        fidelity.Case(Path(), "2.6.3", "random-2", "random"),
    ]
    options = Namespace(sets=["random"], only=[], versions=[], unmatched=False)

    measurement = fidelity.Measurement("random", recorded, options)
    (played,) = measurement.cases
    played.verdict = NOT_EQUAL
    measurement.write(played)

    assert written["random"] == [judged_before, played.row()]
