"""A decoder gives its value or its own error, in bounded time and memory, whatever it is given.

The long test plays all of them for an hour, or for `ISR_FUZZ_SECONDS`, in rounds of other seeds,
and prints how many inputs each had.
"""

from __future__ import annotations

import os
import time
import traceback
import tracemalloc
from collections import Counter

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from emulator.search.fuzz.trial import alarm
from tests.fuzz_decoders.decoders import DECODERS, Decoder

EXAMPLES, ROUND, SHOWN = 40, 400, 2000
AN_HOUR_S = 3600.0


def decode_within_bounds(decoder: Decoder, data: bytes) -> None:
    """Raises what is not the decoder's own, Endless after too much time; fails after too much
    memory."""
    tracemalloc.start()
    try:
        with alarm(decoder.seconds):
            decoder.decode(data)
    except decoder.errors:
        pass
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < decoder.megabytes * 2**20, f"{peak:,} bytes for {len(data):,}"


class Hostile:
    """An input whose beginning is shown where it fails."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def __repr__(self) -> str:
        return f"{self.data[:SHOWN]!r} ({len(self.data):,} bytes)"


def strike(decoder: Decoder, examples: int, number: int) -> int:
    """Hostile inputs of one seed; how many there were. What fails is reduced by hypothesis."""
    count = 0

    @seed(number)
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(decoder.hostile().map(Hostile))
    def decodes(hostile: Hostile) -> None:
        nonlocal count
        count += 1
        decode_within_bounds(decoder, hostile.data)

    decodes()
    return count


@pytest.mark.parametrize("decoder", DECODERS, ids=lambda decoder: decoder.name)
def test_hostile_input_is_a_value_or_the_decoders_own_error(decoder: Decoder) -> None:
    strike(decoder, EXAMPLES, 0)


@pytest.mark.soak
def test_an_hour_of_hostile_input(capsys: pytest.CaptureFixture[str]) -> None:
    ends = time.monotonic() + float(os.environ.get("ISR_FUZZ_SECONDS", AN_HOUR_S))
    first, counts, failures = time.time_ns(), Counter[str](), list[str]()
    number = first
    while time.monotonic() < ends:
        for decoder in DECODERS:
            try:
                counts[decoder.name] += strike(decoder, ROUND, number)
            except Exception as error:  # noqa: BLE001
                failures.append(f"{decoder.name}, seed {number}: {type(error).__name__}: {error}")
                with capsys.disabled():
                    print(f"\n{failures[-1][:SHOWN]}", *traceback.format_exception(error)[-40:])
        number += 1
    with capsys.disabled():
        print(f"\nseeds {first} to {number - 1}:")
        for name, count in counts.items():
            print(f"  {name:<32}{count:>10,}")
    assert not failures
