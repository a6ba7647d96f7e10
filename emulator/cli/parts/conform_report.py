"""The report of `isr conform`: the seven criteria, the first differences, the delays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from emulator.conformance.compare import Difference, Examined, Verdict
from emulator.conformance.criteria import AGREED, CRITERIA
from emulator.conformance.distance import NEAR_ENOUGH
from emulator.conformance.recording import Recording
from emulator.conformance.repeatability import Near
from emulator.search.guided.choices import RERUNS, Choices, ChosenRun
from emulator.search.guided.guided import GuidedMatch, names_of

_COLUMNS = 64


def verdict_lines(verdict: Verdict) -> Iterator[str]:
    """The verdict on one recording."""
    word = "matched" if verdict.matched else "NOT matched"
    *others, last = (CRITERIA[point] for point in AGREED)
    agree = f"{verdict.seeds_agreeing} of {verdict.seeds} agree in {', '.join(others)} and {last}"
    yield f"{verdict.recording}: {word}; {agree}"
    for point, criterion in CRITERIA.items():
        equal = f"{verdict.agreeing_by_point[point]} of {verdict.seeds} equal"
        missed = "" if verdict.points[point] else "   NOT matched"
        yield f"  {criterion:<24}{equal:>18}{missed}"
    if 0 < verdict.seeds_agreeing < verdict.seeds:
        # `--only` plays these seeds again.
        yield f"  agree: {','.join(run.removeprefix('seed ') for run in verdict.agreeing)}"
    nearest = [d for d in verdict.nearest_differences.values() if d is not None]
    if nearest:
        yield f"  nearest: {verdict.nearest_run}, which first differs in each criterion at"
        for difference in nearest:
            yield from _difference(difference)
    if verdict.timings:
        outside = sum(not timing.inside for timing in verdict.timings)
        head = f"delays, ms: {len(verdict.timings)}, {outside or 'none'} outside"
        yield f"  {head:<{_COLUMNS}}{'recorded':>9}{'min':>8}{'median':>8}{'max':>8}"
        for timing in verdict.timings:
            range_ms = (timing.min_ms, timing.p50_ms, timing.max_ms)
            figures = "".join(f"{'-' if ms is None else ms:>8}" for ms in range_ms)
            mark = "" if timing.inside else "   OUTSIDE"
            yield f"    {timing.what:<{_COLUMNS - 2}}{timing.recorded_ms:>9}{figures}{mark}"


def _difference(difference: Difference) -> Iterator[str]:
    yield f"    {CRITERIA[difference.point]}, {difference.key}, entry {difference.entry}"
    for side in ("before", "real", "run"):
        entries: Sequence[object] = getattr(difference, side)
        label = "both" if side == "before" else side
        for text in [entry_text(entry) for entry in entries] or ["(nothing)"] * (side != "before"):
            yield f"      {label:<6}{text}"
            label = ""


def play_lines(plays: Sequence[Examined], verdict: Verdict) -> Iterator[str]:
    """Each live play and the races that it lost: its differences from the recording. If the
    recording is not matched, also the races that every play lost."""
    yield f"{verdict.recording}: {len(plays)} live plays"
    for number, run in enumerate(plays, 1):
        lost = [
            f"{difference.key} ({CRITERIA[point]})"
            for point, differences in run.differences.items()
            for difference in differences
        ]
        word = "agrees" if run.agrees else "does not agree"
        races = f"lost: {', '.join(lost)}" if lost else "lost none"
        yield f"  play {number}, {run.run}: {word}; {races}"
    if verdict.differences:
        of = "that agrees" if verdict.seeds_agreeing else "(the nearest is shown)"
        yield f"  lost by every play {of}"
        for difference in verdict.differences:
            yield from _difference(difference)
            yield f"      {_race(difference)}"


def _race(difference: Difference) -> str:
    """The kind of race, as far as the entries show."""
    real, run = list(map(entry_text, difference.real)), list(map(entry_text, difference.run))
    if not run:
        return "only the recorded cluster has it"
    if not real:
        return "only the emulated run has it"
    if sorted(real) == sorted(run):
        return "the same entries in another order"
    if real[0] in run:
        return "the emulated run has an additional entry before it"
    if run[0] in real:
        return "the emulated run lacks an entry before it"
    return "something else happened first"


def entry_text(entry: object) -> str:
    """An entry of a lane in one line: the fields that it has."""
    if isinstance(entry, str):
        return entry
    names: tuple[str, ...] = getattr(entry, "_fields", ())
    if not names:
        return " ".join(map(str, entry)) if isinstance(entry, tuple) else str(entry)
    shown = ((name, getattr(entry, name)) for name in names)
    return "  ".join(
        str(value) if name in ("kind", "op", "said", "path") else f"{name} {_short(value)}"
        for name, value in shown
        if value is not None and value != ()
    )


def _short(value: object) -> str:
    if isinstance(value, tuple) and value and isinstance(value[0], tuple):
        return ", ".join(_short(part) for part in value)
    return str(value).replace(" ", "")


def guided_lines(result: GuidedMatch) -> Iterator[str]:
    """The result of a search, its candidates, and every choice."""
    progress, choices = result.progress, result.choices
    assert progress is not None, "these are choices that were found now"
    of = "" if len(choices.runs) == 1 else f" by {len(choices.runs)} runs"
    how = f"a match{of}" if result.is_match else "no match"
    yield (
        f"{choices.recording}: {how} after {progress.seconds:.1f} s, {progress.samples} samples,"
        f" {progress.searches} searches, {progress.total} candidates"
        f" ({progress.draws_per_second:.0f} per second)"
    )
    if result.is_match:
        yield (
            f"  its delays are judged with {RERUNS} reruns with other latencies,"
            f" of which {result.reruns_agreeing} agree"
        )
    elif result.wrong is not None:
        wrong = result.wrong
        reached = f"segment {progress.segment} of {progress.segments}"
        yield f"  the furthest run came to {wrong.at_ms / 1000:.3f} s, {reached}"
        for side, entry in (("real", wrong.real), ("run", wrong.run)):
            what = "(nothing)" if entry is None else entry_text(entry)
            yield f"    {CRITERIA.get(wrong.point, 'delays')}, {wrong.key}, {side}: {what}"
    yield f"  latencies of version {choices.latencies}"
    yield "  candidates per segment  " + "  ".join(f"{s}: {n}" for s, n in choices.draws.items())
    for name, run in zip(names_of(choices), choices.runs, strict=True):
        yield f"  {name}, base seed {run.seed}"
        for chosen in run.chosen:
            which = " ".join(part for part in (chosen.actor, chosen.purpose) if part) or "all"
            yield f"  choice  segment {chosen.segment:>3}  {which:<58}  seed {chosen.seed:#018x}"


def chosen_line(choices: Choices, run: ChosenRun, played: Recording) -> str:
    """One run played from a file of choices."""
    return (
        f"{choices.recording}: {len(run.chosen)} choices, base seed {run.seed}: played,"
        f" {len(played.events)} facts, {len(played.results)} results of producers"
    )


def distance_lines(result: Near) -> Iterator[str]:
    """Per criterion, the distances between real runs, and from emulated to real runs."""
    yield (
        f"{len(result.recordings)} real runs, {result.runs} emulated runs; median distances,"
        f" ratio at most {NEAR_ENOUGH}"
    )
    head = f"{'real to real':>14}{'emulated to real':>18}{'ratio':>8}{'as far':>9}"
    yield f"  {'criterion':<19}{head}"
    for point, medians in result.distance.points.items():
        text = CRITERIA[int(point)] if point.isdigit() else point
        ratio = "-" if medians.ratio is None else f"{medians.ratio:.2f}"
        figures = f"{medians.real_to_real:>14.3f}{medians.run_to_real:>18.3f}{ratio:>8}"
        as_far = f"{result.distance.relabelings[point].as_far:>9.2f}"
        yield f"  {text:<19}{figures}{as_far}{'' if medians.near_enough else '  TOO FAR'}"
    yield "  as far: of random relabelings of all runs, the fraction at least as far"
    yield f"  can a two-sample test tell them apart? p = {result.distance.p:.3f} (below 0.05: yes)"
