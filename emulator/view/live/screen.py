"""The screen of `isr top`: a running cluster, refreshed and controlled by keys.

Owns the layout on the terminal. A function supplies the newest `Look`; this module does not know
its origin.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import DataTable, Footer, Static
from textual.widgets.data_table import RowKey

from emulator.view.event_text import ids
from emulator.view.live.top_model import (
    SAME,
    UNKNOWN,
    Look,
    broker_line,
    cell,
    differs,
    headline,
    state_words,
    views,
)
from emulator.view.live.zookeeper_view import SeenPartition, leader_name

REFRESH_S = 0.5
FILTERS = ("all", "under-replicated", "views differ")
_COLUMNS = ("partition", "leader", "epoch", "replicas", "ISR", "zkVersion")
_NONE_SHOWN = {
    "all": "no topic has a partition",
    "under-replicated": "no partition is under-replicated (f: next filter)",
    "views differ": "all views agree with ZooKeeper (f: next filter)",
}
Row = tuple[str, ...]


class Top(App[None]):
    """The screen. `r`: refresh now; `f`: the next filter; arrows: select the partition to show in
    detail."""

    CSS = """
    #head, #brokers, #detail { height: auto; padding: 0 1; }
    #head { text-style: bold; }
    #partitions { height: 1fr; }
    #detail { border-top: solid $primary; max-height: 50%; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "quit"),
        Binding("f", "filter", "filter"),
        Binding("space", "freeze", "freeze"),
        Binding("r", "refresh_now", "refresh"),
    ]
    ENABLE_COMMAND_PALETTE = False

    def __init__(self, look: Callable[[], Look], refresh_s: float = REFRESH_S) -> None:
        super().__init__()
        self._newest, self._refresh_s = look, refresh_s
        self._look = Look()
        self._filter = 0
        self._frozen = False
        self._rows: dict[str, Row] = {}
        self._columns: tuple[str, ...] = ()

    def compose(self) -> ComposeResult:
        yield Static(id="head", markup=False)
        yield Static(id="brokers", markup=False)
        yield DataTable[str](id="partitions", cursor_type="row", zebra_stripes=True)
        yield Static(id="detail", markup=False)
        yield Footer()

    def on_mount(self) -> None:
        self.query_one(DataTable).focus()
        self.refresh_look()
        self.set_interval(self._refresh_s, self._tick)

    def _tick(self) -> None:
        if not self._frozen:
            self.refresh_look()

    def action_filter(self) -> None:
        self._filter = (self._filter + 1) % len(FILTERS)
        self._show()

    def action_freeze(self) -> None:
        self._frozen = not self._frozen
        self._show()

    def action_refresh_now(self) -> None:
        self.refresh_look()

    def on_data_table_row_highlighted(self, event: DataTable.RowHighlighted) -> None:
        self._show_detail(event.row_key)

    # -- display -----------------------------------------------------------------------------------

    def refresh_look(self) -> None:
        """Show the newest look."""
        self._look = self._newest()
        self._show()

    def _show(self) -> None:
        look = self._look
        shown = f"showing: {FILTERS[self._filter]}{', frozen' if self._frozen else ''}"
        self.query_one("#head", Static).update(f"{headline(look)}   {shown}")
        lines = [broker_line(look, broker) for broker in look.seen.brokers]
        self.query_one("#brokers", Static).update("\n".join(lines) or "no broker is registered")
        # A new broker or another selection of partitions needs a new table; otherwise only cells
        # change.
        table: DataTable[str] = self.query_one(DataTable)
        columns = (*_COLUMNS, "ctrl", *(f"b{broker}" for broker in look.seen.brokers))
        rows = {one.name: self._row(one) for one in self._chosen()}
        if columns == self._columns and list(rows) == list(self._rows):
            for name, row in rows.items():
                for column, old, new in zip(columns, self._rows[name], row, strict=True):
                    if new != old:
                        table.update_cell(name, column, new, update_width=True)
        else:
            names, at = list(self._rows), table.cursor_row
            selected = names[at] if 0 <= at < len(names) else ""
            table.clear(columns=True)
            for column in columns:
                table.add_column(column, key=column)
            for name, row in rows.items():
                table.add_row(*row, key=name)
            if selected in rows:
                table.move_cursor(row=list(rows).index(selected))
        self._columns, self._rows = columns, rows
        at = table.cursor_row
        self._show_detail(table.ordered_rows[at].key if 0 <= at < table.row_count else None)

    def _chosen(self) -> list[SeenPartition]:
        """The partitions that pass the filter."""
        partitions = self._look.seen.partitions.values()
        if FILTERS[self._filter] == "under-replicated":
            # Those without a leader or a state too, which the leader's gauge leaves out.
            return [
                one
                for one in partitions
                if one.is_under_replicated or one.is_offline or one.state is None
            ]
        if FILTERS[self._filter] == "views differ":
            return [one for one in partitions if differs(self._look, one)]
        return list(partitions)

    def _row(self, one: SeenPartition) -> Row:
        state = one.state
        brokers = self._look.brokers
        cells = [
            text for whose, _, text in views(self._look, one) if whose.startswith("controller")
        ]
        for broker in self._look.seen.brokers:
            metadata = brokers[broker].metadata if broker in brokers else None
            cached = (metadata or {}).get(one.name)
            cells.append(cell(cached, state, known=metadata is not None))
        if state is None:
            return (one.name, "none", "", ids(one.replicas), "", "", *cells)
        return (
            one.name,
            leader_name(state.leader),
            str(state.leader_epoch),
            ids(one.replicas),
            ids(state.isr),
            str(state.zk_version),
            *cells,
        )

    def _show_detail(self, key: RowKey | None) -> None:
        chosen = key.value if key is not None else None
        partition = self._look.seen.partitions.get(chosen or "")
        detail = self.query_one("#detail", Static)
        if partition is None:
            detail.update("" if self._rows else _NONE_SHOWN[FILTERS[self._filter]])
            return
        state = partition.state
        written = (
            "" if state is None else f"   written in controller epoch {state.controller_epoch}"
        )
        lines = [f"{partition.name}   ZooKeeper: {state_words(state)}{written}"]
        for whose, known, text in views(self._look, partition):
            words = state_words(known) if text != UNKNOWN else "unknown"
            lines.append(f"  {whose:<13} {words}{'' if text in (SAME, UNKNOWN) else '   differs'}")
        for name, about in self._look.seen.notifications.items():
            if partition.name in about:
                lines.append(f"  {name} pending for the controller")
        detail.update("\n".join(lines))
