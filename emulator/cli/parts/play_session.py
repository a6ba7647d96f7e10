"""A session of `isr play`: the prompt, the commands, and their output."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import ClassVar

import msgspec
from rich.console import Console

from emulator.cli.parts.errors import writing
from emulator.cli.parts.progress import ProgressLine
from emulator.runs.by_hand import ActionFailed, ManualRun
from emulator.runs.play import SIMULATED
from emulator.runs.session import header_of
from emulator.scenario.actions.base import Action, actions
from emulator.scenario.errors import UserError, instead_of
from emulator.scenario.load import LoadedScenario
from emulator.scenario.schema import Settings
from emulator.scenario.standing import chosen_to_heal, words_of
from emulator.scenario.typed import SHORT, cluster_of, read_typed, usage
from emulator.scenario.units import BadDuration, duration_us, show_us
from emulator.scenario.written import write_scenario
from emulator.trace.state.timeline import Timeline
from emulator.view import selectors
from emulator.view.describe import describe
from emulator.view.describe_text import render_description
from emulator.view.lanes import render_lanes
from emulator.view.live_lanes import LiveLanes
from emulator.view.rows import has_story
from emulator.view.why import explain_version
from emulator.view.why_text import render_why


class Quit(Exception):
    """The user ended the session."""


class PlaySession:
    """A cluster played by hand. A line with an error raises UserError and changes nothing."""

    def __init__(
        self,
        console: Console,
        hand: ManualRun,
        loaded: LoadedScenario,
        file: Path,
        settings: Settings,
    ) -> None:
        self.console, self.hand, self.file = console, hand, file
        self._loaded, self._settings = loaded, settings
        self._lanes = LiveLanes()
        self._saved = False
        self._show_new_rows()

    # -- input lines -------------------------------------------------------------------------------

    def converse(self) -> None:
        """At a terminal: report an error, and prompt for the next line."""
        from prompt_toolkit import PromptSession
        from prompt_toolkit.completion import WordCompleter

        words = sorted({*self.COMMANDS, *SHORT, *actions(), "zookeeper"})
        session: PromptSession[str] = PromptSession(
            completer=WordCompleter(words), complete_while_typing=False
        )
        while True:
            try:
                line = session.prompt(self.prompt, bottom_toolbar=self._status())
            except KeyboardInterrupt:  # Ctrl-C empties the line
                continue
            except EOFError:  # Ctrl-D
                return
            try:
                self.obey(line)
            except Quit:
                return
            except UserError as error:
                self.console.print(f"{error}", style="red", markup=False)
            except KeyboardInterrupt:
                self.console.print("interrupted; the command was undone", style="red")
                self._lanes.back_to(len(self.hand.events))

    def _status(self) -> str:
        """`brokers 1, 2 paused, 3   controller 3   orders-0 [1,3] v1   …`"""
        state = self.hand.state
        processes = {broker: state.processes.state(broker) for broker in state.processes.history}
        brokers = ", ".join(
            str(broker) if process == "up" else f"{broker} {process}"
            for broker, process in sorted(processes.items())
        )
        znodes = [(name, one.in_zookeeper) for name, one in sorted(state.partitions.all.items())]
        states = [f"{name} {list(znode.isr)} v{znode.version}" for name, znode in znodes if znode]
        shown = "   ".join(states[:4]) + ("   ..." if len(states) > 4 else "")
        return f"brokers {brokers}   controller {state.znodes.controller or 'none'}   {shown}"

    def follow(self, lines: Iterable[str]) -> None:
        """From standard input: show each line; the first error ends the session."""
        for line in lines:
            if line.strip() and not line.lstrip().startswith("#"):
                self.console.print(f"{self.prompt}{line.strip()}", style="bold", markup=False)
                try:
                    self.obey(line)
                except Quit:
                    return

    @property
    def prompt(self) -> str:
        """`12.500 s> `"""
        return f"{self.hand.now_us / 1e6:.3f} s> "

    def obey(self, line: str) -> None:
        """Execute a line. Raises UserError, Quit."""
        try:
            words = shlex.split(line, comments=True)
        except ValueError as error:
            raise UserError(f"{line.strip()}: {error}") from None
        if not words:
            return
        own = self.COMMANDS.get(words[0])
        if own is not None:
            try:
                own(self, words[1:])
            except selectors.NotInRun as error:
                raise UserError(f"{error}") from None
        elif words[0] in actions() or words[0] in SHORT:
            done = (step.action for step in self.hand.steps)
            self._do([read_typed(words, cluster_of(self._loaded, done))])
        else:
            near = instead_of(words[0], [*self.COMMANDS, *SHORT, *actions()])
            near = near if near.startswith("did") else "help lists all commands"
            raise UserError(f"unknown command {words[0]}; {near}")

    def _do(self, actions: Sequence[Action]) -> None:
        try:
            self.hand.do(*actions)
        except ActionFailed as error:
            names = ", ".join(one.name for one in actions)
            ours = not isinstance(error.__cause__, UserError)
            raise UserError(f"{names}: internal error: {error}" if ours else f"{error}") from None
        self._after()

    def _after(self) -> None:
        self._show_new_rows()
        self._save(self.file)
        self._saved = True

    def _show_new_rows(self) -> None:
        marked = {one.facts[1]: f"{one.invariant}: {one.text}" for one in self.hand.violations}
        for text in self._lanes.new_lines(self.hand.events, self.console.width, marked):
            self.console.print(text)

    # -- time --------------------------------------------------------------------------------------

    def do_run(self, words: list[str]) -> None:
        """Let time pass: `run 3s`, `run until 12s`."""
        until = words[:1] == ["until"]
        text = " ".join(words[1:] if until else words) or "1s"
        try:
            us = duration_us(text) - (self.hand.now_us if until else 0)
        except BadDuration as error:
            raise UserError(f"run: {error}") from None
        if us <= 0:
            raise UserError(f"run: it is {show_us(self.hand.now_us)} already")
        try:
            with ProgressLine(shown=sys.stderr.isatty()) as line:
                self.hand.let(us, lambda now_us: line.update(lambda: f"{now_us / 1e6:.1f} s"))
        except ActionFailed as error:
            raise UserError(f"run: internal error, time was set back: {error}") from None
        self._after()

    def do_step(self, words: list[str]) -> None:
        """Run until the lanes have a new row."""
        with ProgressLine(shown=sys.stderr.isatty()) as line:
            moved = self.hand.step(
                lambda events: bool(events) and has_story(Timeline(events)),
                lambda now_us: line.update(lambda: f"{now_us / 1e6:.1f} s"),
            )
        if not moved:
            self.console.print("no event for one minute", style="dim")
        self._after()

    def do_undo(self, words: list[str]) -> None:
        """Take back the last action or run."""
        act = self.hand.undo()
        if act is None:
            raise UserError("undo: nothing has been done")
        self._lanes.back_to(len(self.hand.events))
        done = ", ".join(words_of(one) for one in act.actions) or f"time until {show_us(act.at_us)}"
        self.console.print(f"taken back: {done}; it is {show_us(self.hand.now_us)}", markup=False)
        self._save(self.file)

    # -- healing -----------------------------------------------------------------------------------

    def do_heal(self, words: list[str]) -> None:
        """End all current faults, or those that the words name."""
        chosen = chosen_to_heal(words, self.hand.standing)
        self._do([healed for one in chosen if (healed := one.healed()) is not None])

    # -- output ------------------------------------------------------------------------------------

    def do_describe(self, words: list[str]) -> None:
        """Show the state: `describe`, `describe orders-0`, `describe fetchers`."""
        timeline = Timeline(self.hand.events, is_over=False)
        fetchers = "fetchers" in words
        names = [word for word in words if word != "fetchers"]
        only = selectors.partition(names[0], timeline) if names else None
        at_us = self.hand.up_us + self.hand.now_us
        description = describe(self.hand.state, at_us, timeline.origin_us)
        self.console.print(render_description(description, only=only, fetchers=fetchers))

    def do_why(self, words: list[str]) -> None:
        """Explain an ISR change: `why` (the last one), `why orders-0@v1`."""
        timeline = Timeline(self.hand.events, is_over=False)
        if words:
            partition, version = selectors.change(words[0], timeline)
        else:
            writes = [state for one in timeline.partitions for state in timeline.states(one)]
            if not writes:
                raise UserError("why: no partition has a state yet")
            last = max(writes, key=lambda write: write.seq)
            partition, version = last.partition, last.version
        header = header_of(self._loaded, self.hand.seed, SIMULATED)
        self.console.print(render_why(explain_version(timeline, header, partition, version)))

    def do_show(self, words: list[str]) -> None:
        """Show all lanes, or those of one partition."""
        timeline = Timeline(self.hand.events, is_over=False)
        only = selectors.partition(words[0], timeline) if words else None
        self.console.print(render_lanes(self.hand.events, partition=only))

    # -- saving and leaving ------------------------------------------------------------------------

    def do_save(self, words: list[str]) -> None:
        """Save the scenario: `save`, `save FILE`."""
        file = Path(words[0]) if words else self.file
        self._save(file)
        self.console.print(f"saved in {file}", markup=False)

    def _save(self, file: Path) -> None:
        again = f"isr run {shlex.quote(str(file))} --zookeeper simulated --seed {self.hand.seed:#x}"
        text = write_scenario(
            self._loaded,
            self.hand.steps,
            self.hand.now_us,
            settings=self._settings,
            head=(f"Played by hand; repeat with: {again}",),
        )
        aside = file.with_name(f".{file.name}.part")
        with writing(file):
            aside.write_text(text, encoding="utf-8")
            aside.replace(file)

    def leave(self, again: str) -> None:
        """Print where the scenario is saved and how to play it again."""
        if self._saved:
            self.console.print(f"saved in   {self.file}", markup=False, soft_wrap=True)
            self.console.print(
                f"repeat it  {again} --zookeeper simulated", markup=False, soft_wrap=True
            )

    def as_json(self) -> dict[str, object]:
        """`scenario`, `seed`, `at_ms`, `events`, `file` (null: no steps), `acts`: `at_ms` and the
        actions of each."""
        return {
            "scenario": self._loaded.name,
            "seed": self.hand.seed,
            "at_ms": self.hand.now_us / 1000,
            "events": len(self.hand.events),
            "file": str(self.file) if self._saved else None,
            "acts": [
                {
                    "at_ms": act.at_us / 1000,
                    "actions": [msgspec.to_builtins(s) for s in act.actions],
                }
                for act in self.hand.acts
            ],
        }

    def do_help(self, words: list[str]) -> None:
        """List the commands."""
        for name, own in self.COMMANDS.items():
            first_line = (own.__doc__ or "").strip().partition("\n")[0]
            self.console.print(f"  {name:<12}{first_line}", markup=False)
        for short, name in SHORT.items():
            if short not in actions():
                self.console.print(f"  {short:<12}short for {name}", markup=False)
        for name in sorted(actions()):
            self.console.print(f"  {usage(name)}", markup=False, style="dim")

    def do_quit(self, words: list[str]) -> None:
        """End the session; everything is saved already."""
        raise Quit

    do_exit = do_quit

    COMMANDS: ClassVar[dict[str, Callable[[PlaySession, list[str]], None]]] = {
        name.removeprefix("do_"): method
        for name, method in locals().copy().items()
        if name.startswith("do_")
    }
