"""The prompt of `isr play` at a terminal: completion, history, the state of things below it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import WordCompleter
from prompt_toolkit.history import InMemoryHistory

from emulator.scenario.actions.base import stimuli
from emulator.scenario.typed import SHORT
from emulator.trace.state.snapshot import snapshot

if TYPE_CHECKING:
    from emulator.cli.parts.play_session import Table

NEVER = 1 << 62


class Prompt:
    """Asks for one line after the other. Ctrl-C empties the line, Ctrl-D ends."""

    def __init__(self, table: Table) -> None:
        self._table = table
        words = sorted({*table.COMMANDS, *SHORT, *stimuli(), "zookeeper"})
        self._session: PromptSession[str] = PromptSession(
            history=InMemoryHistory(), completer=WordCompleter(words), complete_while_typing=False
        )

    def lines(self) -> Iterator[str]:
        while True:
            try:
                below = self._below()
                yield self._session.prompt(self._table.prompt, bottom_toolbar=below)
            except KeyboardInterrupt:
                continue
            except EOFError:
                return

    def _below(self) -> str:
        """`brokers 1, 2 paused, 3   controller 3   orders-0 [1,3] v1   …`"""
        found = snapshot(self._table.hand.events, NEVER)
        brokers = ", ".join(
            str(one.broker) if one.process in (None, "up") else f"{one.broker} {one.process}"
            for one in (found.members[broker] for broker in sorted(found.members))
        )
        states = [
            f"{name} {list(state.isr)} v{state.zk_version}"
            for name, state in sorted(found.states.items())
        ]
        shown = "   ".join(states[:4]) + ("   ..." if len(states) > 4 else "")
        return f"brokers {brokers}   controller {found.controller or 'none'}   {shown}"
