"""`isr top`'s screen, driven by keys as a person does it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import msgspec
from textual.pilot import Pilot
from textual.widgets import DataTable, Static

from emulator.view.live.screen import Top
from emulator.view.live.top_model import Look
from emulator.view.live.zookeeper_view import SeenPartition, SeenState
from tests.unit.view.test_zookeeper_view import look


class Screen:
    """The application, what it is shown, and what can be read off it."""

    def __init__(self) -> None:
        self.look = _with_more(look())
        self.app = Top(lambda: self.look, refresh_s=3600)
        self.pilot: Pilot[None]

    def rows(self) -> list[list[str]]:
        table: DataTable[str] = self.app.query_one(DataTable)
        return [table.get_row_at(at) for at in range(table.row_count)]

    def text(self, name: str) -> str:
        return str(self.app.query_one(name, Static).render())

    async def show(self, newest: Look) -> None:
        self.look = newest
        await self.pilot.press("r")


def _with_more(one: Look) -> Look:
    """With another partition on which all views agree."""
    whole = SeenPartition("clicks", 0, (1, 2), (), (), SeenState(2, 4, (1, 2), 9, 3))
    partitions = {"clicks-0": whole, **one.seen.partitions}
    return msgspec.structs.replace(
        one, seen=msgspec.structs.replace(one.seen, partitions=partitions), brokers={}
    )


def played(play: Callable[[Screen], Awaitable[None]]) -> None:
    async def run() -> None:
        screen = Screen()
        async with screen.app.run_test(size=(160, 30)) as screen.pilot:
            await screen.pilot.pause()
            await play(screen)

    asyncio.run(run())


def test_partitions_are_rows_with_each_brokers_view() -> None:
    async def play(screen: Screen) -> None:
        assert screen.rows() == [
            ["clicks-0", "2", "4", "[1,2]", "[1,2]", "9", "?", "?", "?", "?"],
            ["orders-0", "1", "0", "[1,2,3]", "[1,3]", "1", "?", "?", "?", "?"],
        ]
        await screen.show(look())
        assert screen.rows() == [
            ["orders-0", "1", "0", "[1,2,3]", "[1,3]", "1", "?", "=", "1 e0 [1,2,3]", "?"]
        ]
        assert "controller 3, epoch 3" in screen.text("#head")
        assert "CONTROLLER" in screen.text("#brokers")
        assert "does not respond: refused" in screen.text("#brokers")

    played(play)


def test_the_chosen_partition_is_shown_whole_and_stays_chosen() -> None:
    async def play(screen: Screen) -> None:
        assert screen.text("#detail").startswith("clicks-0")
        await screen.pilot.press("down")
        assert "ZooKeeper: 1 e0 [1,3] v1   written in controller epoch 3" in screen.text("#detail")
        await screen.show(look())
        text = screen.text("#detail")
        assert "metadata 2    1 e0 [1,2,3]   differs" in text
        assert "metadata 3    unknown" in text

    played(play)


def test_filters_go_round() -> None:
    async def play(screen: Screen) -> None:
        await screen.pilot.press("f")
        assert [row[0] for row in screen.rows()] == ["orders-0"]
        assert "showing: under-replicated" in screen.text("#head")
        await screen.pilot.press("f")
        assert screen.rows() == []
        assert "all views agree with ZooKeeper" in screen.text("#detail")
        await screen.show(look())
        assert [row[0] for row in screen.rows()] == ["orders-0"]
        await screen.pilot.press("f")
        assert "showing: all" in screen.text("#head")

    played(play)


def test_a_cell_that_changes_is_drawn_anew() -> None:
    async def play(screen: Screen) -> None:
        newer = SeenState(1, 0, (1, 3, 2), 2, 3)
        seen = screen.look.seen
        orders = msgspec.structs.replace(seen.partitions["orders-0"], state=newer)
        partitions = {**seen.partitions, "orders-0": orders}
        now = msgspec.structs.replace(seen, partitions=partitions)
        await screen.show(msgspec.structs.replace(screen.look, seen=now))
        assert screen.rows()[1][4] == "[1,3,2]"
        assert screen.rows()[0][4] == "[1,2]"

    played(play)


def test_frozen_it_stands_still_and_q_ends_it() -> None:
    async def play(screen: Screen) -> None:
        await screen.pilot.press("space")
        assert "frozen" in screen.text("#head")
        screen.look = Look()
        screen.app._tick()
        assert len(screen.rows()) == 2
        await screen.pilot.press("space")
        screen.app._tick()
        assert screen.rows() == []
        await screen.pilot.press("q")
        assert not screen.app.is_running

    played(play)
