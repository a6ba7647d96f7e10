"""A grid always gives the same runs in the same batches; invalid grids are refused at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator.analysis.sweep.grid import Grid, batches, grid_of, points, run_name
from emulator.analysis.sweep.spark import MANIFEST, prepare
from emulator.scenario import shipped
from emulator.scenario.errors import UserError

LAG = "replica.lag.time.max.ms=1000,2000"


def grid(sets: list[str], seeds: int = 25, profiles: tuple[str, ...] = ()) -> Grid:
    source = shipped.find("min-isr")
    return grid_of(source, source.read_text(), points(sets, profiles, (), ()), 1, seeds)


def test_a_grid_is_every_setting_and_version_with_every_seed() -> None:
    found = grid([LAG, "num.io.threads=1,2,4"], profiles=("2.4", "2.6"))
    runs = {
        (batch.point.sets, batch.point.chosen.profile, seed)
        for batch in batches(found)
        for seed in batch.seeds
    }
    assert len(runs) == found.runs == 2 * 3 * 2 * 25
    assert {sets for sets, _, _ in runs} >= {("replica.lag.time.max.ms=1000", "num.io.threads=4")}
    assert {seed for _, _, seed in runs} == set(range(1, 26))


def test_runs_of_one_seed_have_names_of_their_own() -> None:
    one, other = points([LAG], (), (), ())
    assert run_name(one, 31) != run_name(other, 31)
    assert run_name(one, 31).startswith("0x1f-")
    assert run_name(points([], (), (), ())[0], 31) == "0x1f"


def test_batches_are_numbered_the_same_each_time() -> None:
    assert list(batches(grid([LAG]))) == list(batches(grid([LAG])))
    assert [batch.number for batch in batches(grid([LAG]))] == list(range(6))


@pytest.mark.parametrize(
    ("sets", "why"),
    [
        (["replica.lag.time.max.ms"], "write KEY=VALUE or KEY=VALUE,VALUE"),
        (["replica.lag.time.max.ms=1,"], "write KEY=VALUE or KEY=VALUE,VALUE"),
        ([LAG, LAG], "set more than once; write replica.lag.time.max.ms=a,b"),
        (["replica.lag.tine.max.ms=1"], "there is no setting replica.lag.tine.max.ms"),
        (["replica.lag.time.max.ms=1000,never"], "replica.lag.time.max.ms"),
    ],
)
def test_a_grid_that_cannot_be_played_is_named(sets: list[str], why: str) -> None:
    with pytest.raises(UserError, match=why):
        grid(sets)


def test_a_sweep_goes_on_only_where_it_was_begun(tmp_path: Path) -> None:
    out = tmp_path / "data"
    with pytest.raises(UserError, match="no sweep was started there"):
        prepare(grid([LAG]), out, resume=True)
    assert len(prepare(grid([LAG]), out, resume=False)) == 6
    with pytest.raises(UserError, match="is not empty; use --resume"):
        prepare(grid([LAG]), out, resume=False)
    with pytest.raises(UserError, match="belongs to another grid"):
        prepare(grid([LAG], seeds=26), out, resume=True)
    (out / "runs").mkdir()
    (out / "runs" / "batch-000002.parquet").touch()
    left = prepare(grid([LAG]), out, resume=True)
    assert [batch.number for batch in left] == [0, 1, 3, 4, 5]
    assert (out / MANIFEST).exists()
