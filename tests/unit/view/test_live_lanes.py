"""Growing lanes: each row once, under names that are printed once."""

from __future__ import annotations

from emulator.trace import events as e
from emulator.view.live_lanes import LiveLanes
from tests.unit.view.traces import P0, Script

WIDTH = 150


def grown(lanes: LiveLanes, script: Script, **options: dict[int, str]) -> str:
    return "\n".join(str(line) for line in lanes.new_lines(script.events, WIDTH, **options))


def test_what_was_shown_is_not_shown_again() -> None:
    lanes, script = LiveLanes(), Script().shrink_and_late_news()
    first = grown(lanes, script)
    assert first.count("shrinks [1,2,3] → [1,3]") == 1
    assert first.count("time   controller") == 1
    assert grown(lanes, script) == ""
    script.at(20_000).changes((1, 3), (1, 3, 2), 2)
    second = grown(lanes, script)
    assert "expands [1,3] → [1,3,2]" in second
    assert "shrinks" not in second
    assert "time   controller" not in second


def test_what_did_not_happen_is_forgotten_and_what_comes_instead_is_shown() -> None:
    lanes, script = LiveLanes(), Script()
    script.action("up")
    script.create((1, 2, 3))
    before = len(script.events)
    script.at(3000).action("pause", broker=2)
    grown(lanes, script)
    del script.events[before:]
    lanes.back_to(before)
    script.at(4000).action("pause", broker=3)
    shown = grown(lanes, script)
    assert "4.000" in shown
    assert shown.count("paused") == 1


def test_a_row_can_be_marked_with_why() -> None:
    lanes, script = LiveLanes(), Script().shrink_and_late_news()
    write = next(e for e in script.events if e.kind == "isr_updated")
    shown = grown(lanes, script, marked={write.seq: "leader in ISR: broken"})
    assert "✗ leader in ISR: broken" in shown


def test_clients_have_no_column_where_the_others_would_lose_their_words() -> None:
    """Their refused requests are then shown across the table."""
    lanes, script = LiveLanes(), Script().shrink_and_late_news()
    grown(lanes, script)
    script.at(20_000).add(e.RecordsProduced, 0, "p", P0, "1", "TIMED_OUT", -1, 1, 0)
    script.add(e.RecordsProduced, 0, "p", P0, "1", "ok", 7, 1, 0)
    shown = [str(line) for line in lanes.new_lines(script.events, 120)]
    assert any("── clients: 1 record TIMED_OUT, acks 1 ──" in line for line in shown)
    assert not any("acknowledged" in line for line in shown)
    lanes.back_to(0)
    wide = grown(lanes, script)
    assert "TIMED_OUT" in wide
    assert "clients" in wide
    narrow = "\n".join(str(line) for line in LiveLanes().new_lines(script.events, 70))
    assert "clients: 1 record TIMED_OUT" in narrow
