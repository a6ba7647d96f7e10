"""The pictures of docs/: drawn by `make pages` from runs in virtual time, never by hand.

Each is made twice, for light and for dark pages (`NAME-light.svg`, `NAME-dark.svg`). The same
seed gives the same picture, byte for byte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl
from matplotlib import pyplot as plt

from emulator.runs.session import Request, RunListeners, play_in_memory
from emulator.scenario.load import load
from emulator.scenario.shipped import find
from emulator.trace.state.processes import PAUSED
from emulator.trace.state.spans import Known
from emulator.trace.values import TopicPartition

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK = {"light": "#24292f", "dark": "#d0d7de"}
# One color per broker, then the high watermark's: they stand out on white and on black.
BROKERS = {1: "#2f81f7", 2: "#db6d28", 3: "#3fb950"}
HIGH_WATERMARK = "#a371f7"
VERSIONS = ("#57606a", "#2f81f7", "#3fb950", "#db6d28", "#a371f7")


@contextmanager
def axes(path: Path, theme: str, height: float) -> Iterator[Axes]:
    """An empty drawing, which is written to `path` in the end."""
    ink = INK[theme]
    settings = {
        # Text stays text; names of glyphs and clips come from this salt and not from chance.
        "svg.fonttype": "none",
        "svg.hashsalt": path.name,
        "font.family": "sans-serif",
        "font.size": 9,
        **dict.fromkeys(("text.color", "axes.labelcolor", "xtick.color", "ytick.color"), ink),
        "axes.edgecolor": ink,
    }
    with mpl.rc_context(settings):
        figure, drawing = plt.subplots(figsize=(8, height), layout="constrained")
        drawing.spines[["top", "right"]].set_visible(False)
        drawing.set_xlabel("seconds since the cluster was up")
        yield drawing
        figure.savefig(path, transparent=True, metadata={"Date": None})
        plt.close(figure)


class Drawn:
    """A run to draw, with its times in seconds since the cluster was up."""

    def __init__(self, scenario: str, seed: int = 1) -> None:
        attached: list[RunListeners] = []
        play_in_memory(Request(scenario=load(find(scenario)), seed=seed), attach=attached.append)
        self.state = attached[0].state
        self.end_us = self.state.clock.now_us

    def seconds(self, at_us: int) -> float:
        up_us = self.state.clock.up_us or 0
        return (min(at_us, self.end_us) - up_us) / 1e6

    def shade_pauses(self, drawing: Axes) -> None:
        for broker in sorted(self.state.processes.history):
            for from_us, to_us in self.state.processes.spans(broker, PAUSED, self.end_us):
                span = self.seconds(from_us), self.seconds(to_us)
                drawing.axvspan(*span, color=BROKERS[broker], alpha=0.12, linewidth=0)
                place = (span[0] + 0.1, 0.98)
                drawing.annotate(
                    f"broker {broker} paused", place, xycoords=("data", "axes fraction"), va="top"
                )


def draw_water_levels(run: Drawn, drawing: Axes, partition: TopicPartition) -> None:
    """Log end offsets of every replica, and the leader's high watermark."""
    levels = run.state.water_levels.levels[partition]
    for broker, steps in sorted(levels.items()):
        times = [run.seconds(step.from_us) for step in steps]
        leo = [step.leo for step in steps]
        drawing.step(
            [*times, run.seconds(run.end_us)],
            [*leo, leo[-1]],
            where="post",
            color=BROKERS[broker],
            label=f"LEO of broker {broker}",
        )
    for term in run.state.water_levels.leaderships[partition]:
        steps = [step for step in levels[term.broker] if term.from_us <= step.from_us < term.to_us]
        drawing.step(
            [run.seconds(step.from_us) for step in steps],
            [step.hw for step in steps],
            where="post",
            color=HIGH_WATERMARK,
            linestyle="--",
            label="high watermark",
        )
    run.shade_pauses(drawing)
    for state in run.state.partitions.of(partition).states[1:]:
        at_s = run.seconds(state.from_us)
        members = ",".join(map(str, state.isr))
        drawing.axvline(at_s, color="#848d97", alpha=0.6, linewidth=0.8)
        drawing.annotate(
            f"ISR [{members}]",
            (at_s, 0.02),
            xycoords=("data", "axes fraction"),
            xytext=(3, 0),
            textcoords="offset points",
        )
    drawing.set_ylabel("offset")
    drawing.legend(loc="center left", frameon=False)


def draw_propagation(run: Drawn, drawing: Axes, partition: TopicPartition) -> None:
    """Which version of a partition's state ZooKeeper has, and which ones the others hold."""
    state = run.state
    rows: list[tuple[str, list[Known]]] = [
        ("ZooKeeper", list(state.partitions.of(partition).history)),
        ("controller", state.controller.history.get(partition, [])),
    ]
    brokers = state.staleness.brokers(partition)
    rows += [(f"metadata of broker {b}", state.metadata.spans(b, partition)) for b in brokers]
    for row, (_, spans) in enumerate(rows):
        for span in spans:
            left, right = run.seconds(span.from_us), run.seconds(span.to_us)
            color = VERSIONS[span.version % len(VERSIONS)]
            drawing.barh(row, right - left, left=left, height=0.7, color=color, alpha=0.75)
            width = (right - left) / run.seconds(run.end_us)
            members = ",".join(map(str, span.isr))
            label = f"v{span.version} [{members}]" if width > 0.15 else f"v{span.version}"
            if width > 0.035:
                drawing.annotate(
                    label, (left, row), xytext=(4, 0), textcoords="offset points", va="center"
                )
    drawing.set_yticks(range(len(rows)), [name for name, _ in rows])
    drawing.invert_yaxis()


Draw = Callable[[Drawn, "Axes", TopicPartition], None]
PICTURES: tuple[tuple[str, str, TopicPartition, Draw, float], ...] = (
    ("water-levels", "shrink-and-expand", TopicPartition("orders", 0), draw_water_levels, 3.6),
    ("propagation-zk", "flapping", TopicPartition("orders", 0), draw_propagation, 2.4),
    ("propagation-rpc", "flapping-rpc", TopicPartition("orders", 0), draw_propagation, 2.4),
)
"""Name, scenario, partition, what is drawn, height in inches."""


def draw_all(directory: Path) -> None:
    directory.mkdir(exist_ok=True)
    for name, scenario, partition, draw, height in PICTURES:
        run = Drawn(scenario)
        for theme in INK:
            with axes(directory / f"{name}-{theme}.svg", theme, height) as drawing:
                draw(run, drawing, partition)
