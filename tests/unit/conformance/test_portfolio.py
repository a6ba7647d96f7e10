"""How many draws each of several searches gets."""

from emulator.conformance.portfolio import luby


def test_mostly_short_searches_now_and_then_a_longer_one() -> None:
    assert [luby(n) for n in range(1, 16)] == [1, 1, 2, 1, 1, 2, 4, 1, 1, 2, 1, 1, 2, 4, 8]
