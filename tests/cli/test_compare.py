"""`isr compare` as a user meets it: what it prints, what it leaves, and how it ends."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from emulator.runs import play as plays
from emulator.runs.comparison import Measured, Variant, figures
from emulator.scenario import shipped
from emulator.scenario.load import loads
from emulator.trace.state.zookeeper_load import Load
from emulator.view.stored import open_run
from tests import command
from tests.unit.view.test_html import parsed

SCENARIO = """\
about: tried
cluster: {config: {replica.lag.time.max.ms: 1000, auto.leader.rebalance.enable: false}}
topics: {orders: {partitions: [[1, 2, 3]]}}
workload: [{produce: orders, rate: 10, acks: all, from: 1s, until: 6s}]
faults: [{at: 2s, pause: {broker: 2}, for: 2s}]
run: 12s
"""
A, B = "replica.lag.time.max.ms=1000", "replica.lag.time.max.ms=10000"
LAGS = ("--set-a", A, "--set-b", B)


class Isr(command.Isr):
    def compare(self, *arguments: str) -> tuple[int, Any, str]:
        code, out, err = self("compare", "tried.yaml", "--json", *arguments)
        return code, json.loads(out) if out else None, err


@pytest.fixture
def isr(monkeypatch: pytest.MonkeyPatch, capsys: Any, tmp_path: Path) -> Isr:
    monkeypatch.chdir(tmp_path)
    Path("tried.yaml").write_text(SCENARIO)
    return Isr(capsys)


def test_the_seed_comes_first_the_figures_then_and_the_command_that_repeats_it_last(
    isr: Isr,
) -> None:
    code, out, _ = isr("compare", "tried.yaml", *LAGS, "--seed", "0x1", "--seeds", "2")
    assert code == 0
    lines = out.splitlines()
    assert lines[0] == f"seed 0x1   tried: {A} and {B}, 2 each, 12 s, virtual time"
    assert lines[-1].split(maxsplit=2)[2] == (
        "isr compare tried.yaml --seed 0x1 --set-a replica.lag.time.max.ms=1000"
        " --set-b replica.lag.time.max.ms=10000 --seeds 2"
    )
    assert any(line.split() == ["ISR", "changes", "4", "0"] for line in lines)
    assert any(line.split() == ["CAS", "conflicts", "0", "0"] for line in lines)
    assert not any("records refused" in line for line in lines)


def test_compare_json_has_both_sides_with_percentiles_and_counts(isr: Isr) -> None:
    code, found, _ = isr.compare(*LAGS, "--seed", "7", "--seeds", "2", "--jobs", "2", "--quiet")
    assert code == 0
    assert list(found["paths"]) == [A, B]
    a, b = found["paths"].values()
    assert (a["runs"], a["counts"]["isr_changes"], b["counts"]["isr_changes"]) == (2, 4, 0)
    for name in ("effective_ms", "controller_ms", "metadata_ms"):
        quantiles = [a[name][q] for q in ("p50", "p95", "p99", "max")]
        assert quantiles == sorted(quantiles)
        assert quantiles[0] > 0
        assert b[name] == {"count": 0, "p50": None, "p95": None, "p99": None, "max": None}
    assert a["effective_ms"]["max"] < 1000 < a["controller_ms"]["p50"]
    assert a["zookeeper"]["leader"]["writes"] == 4 + a["counts"]["notifications"]
    assert a["stale_metadata_ms"]["max"] > 5000
    assert b["stale_metadata_ms"]["per_run"] < a["stale_metadata_ms"]["per_run"]
    file = next(Path("runs/tried-compare").glob("*/compare.json"))
    assert json.loads(file.read_text()) == found


def test_the_page_stands_beside_it_and_the_first_plays_are_runs_like_any_other(isr: Isr) -> None:
    isr.compare("--a", "2.4", "--b", "2.6", "--seed", "7", "--seeds", "1", "--quiet")
    page = next(Path("runs/tried-compare").glob("*/compare.html")).read_text()
    _, data = parsed(page)
    assert [panel["facts"][0] for panel in data["panels"]] == ["2.4", "2.6"]
    assert "http" not in page
    for version in ("2.4", "2.6"):
        run = open_run(next(Path(f"runs/tried-compare-{version}").iterdir()))
        assert (run.header.profile, run.header.seed) == (version, 7)
    code, out, _ = isr("why", "tried-compare-2.4", "orders-0@v1")
    assert code == 0
    assert "ISR shrinks" in out


def test_the_same_command_finds_the_same_figures_however_many_processes_play(isr: Isr) -> None:
    _, first, _ = isr.compare(*LAGS, "--seed", "9", "--seeds", "3", "--jobs", "1", "--quiet")
    again = shlex.split(first["repeat"])[2:]
    _, second, _ = isr("compare", *again, "--jobs", "3", "--json")[0:3]
    for side in (A, B):
        ones, others = first["paths"][side], json.loads(second)["paths"][side]
        assert ones.pop("run_directory") != others.pop("run_directory")
        assert ones == others


@pytest.mark.parametrize(
    ("arguments", "paths"),
    [
        (("--a", "2.7", "--b", "2.8", "--propagation", "zk"), {"2.7": "zk", "2.8": "zk"}),
        (("--a", "2.6", "--b", "2.7"), {"2.6": "zk", "2.7": "rpc"}),
        (("--b", "2.7", "--propagation-b", "zk"), {"2.6": "zk", "2.7": "zk"}),
        (
            ("--profile", "2.8", "--propagation-a", "zk", *LAGS),
            {f"zk,{A}": "zk", f"rpc,{B}": "rpc"},
        ),
    ],
)
def test_the_propagation_of_both_sides_or_of_one_can_be_chosen(
    isr: Isr, arguments: tuple[str, ...], paths: dict[str, str]
) -> None:
    code, found, _ = isr.compare(*arguments, "--seed", "3", "--seeds", "1", "--quiet")
    assert code == 0
    assert {name: side["propagation"] for name, side in found["paths"].items()} == paths
    assert all(word in found["repeat"].split() for word in arguments)


def test_a_guard_of_both_sides_is_one_of_each(isr: Isr) -> None:
    switch = "isr-change-notifications=off"
    isr.compare(*LAGS, "--guard", switch, "--seed", "3", "--seeds", "1", "--quiet")
    for side in (A, B):
        run = open_run(next(Path(f"runs/tried-compare-{side}").iterdir()))
        assert "isr-change-notifications" not in run.header.guards


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("--a", "2.5", "--b", "2.6"), "isr: --profile 2.5: there is no profile 2.5; "),
        (("--profile", "2.6", "--b", "2.4"), "isr: --profile names the version of both sides, "),
        (("--set-a", "no.such=1"), "isr: --set no.such=1: there is no setting no.such; "),
        (("--guard-b", "nonsense=off"), "isr: --guard nonsense=off: there is no guard nonsense; "),
        (
            ("--propagation", "rpc"),
            "isr: --propagation rpc: both sides are the same",
        ),
        (("--propagation-a", "rpc"), "isr: --propagation rpc: Kafka 2.6 has no propagation rpc"),
        (("--seed", "x"), "isr: --seed x: not a whole number"),
        ((*LAGS, "--zookeeper", "nowhere"), "isr: --zookeeper nowhere: embedded, docker, sim"),
        ((*LAGS, "--out", "tried.yaml"), "isr: tried.yaml"),
        (("--seeds", "0"), "isr: Invalid value for '--seeds'"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_64(
    isr: Isr, arguments: tuple[str, ...], line: str
) -> None:
    code, _, err = isr("compare", "tried.yaml", *arguments, "--quiet")
    assert code == 64
    assert err.splitlines()[-1].startswith(line)


def test_ctrl_c_leaves_what_both_sides_had_played(
    isr: Isr, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, played = plays.play, []

    def play(*arguments: Any) -> Any:
        played.append(arguments)
        if len(played) == 4:
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr("emulator.runs.play.play", play)
    monkeypatch.setattr("emulator.runs.side_by_side.in_children", _here)
    code, found, _ = isr.compare(*LAGS, "--seed", "7", "--seeds", "3", "--quiet")
    assert code == 2
    assert (found["broken_off"], found["seeds"]) == (True, 1)


def _here(items: Any, work: Any, _jobs: int) -> Any:
    return ((place, work(item)) for place, item in enumerate(items))


# -- figures ---------------------------------------------------------------------------------------


def measured(seed: int, **own: Any) -> Measured:
    values: dict[str, Any] = {
        "effective_us": [], "controller_us": [], "metadata_us": [], "produce_us": [],
        "stale_us": 0, "stale_us_max": 0, "no_answer_us": 0, "counts": {"isr_changes": 1},
        "leader": Load(), "controller": Load(), "stuck": [], "hazards": [], "broken": [],
    }  # fmt: skip
    return Measured(seed=seed, **values | own)


def test_samples_are_put_together_before_percentiles_are_taken() -> None:
    variant = Variant("zk", loads(SCENARIO, "tried"))
    runs = [measured(1, effective_us=[1000] * 98), measured(2, effective_us=[9000, 90_000])]
    found = figures(variant, runs).effective_ms
    assert (found.p50, found.p95, found.p99, found.max) == (1, 1, 9, 90)


def test_what_is_stuck_or_broken_is_counted_by_name_over_all_plays() -> None:
    variant = Variant("zk", loads(SCENARIO, "tried"))
    runs = [measured(1, stuck=["orders-0"], broken=["x"]), measured(2, stuck=["orders-0"])]
    found = figures(variant, runs)
    assert (found.stuck_partitions, found.stuck) == (2, {"orders-0": 2})
    assert found.broken_invariants == {"x": 1}


def test_traffic_is_given_per_change_and_nothing_is_divided_by_none() -> None:
    variant = Variant("zk", loads(SCENARIO, "tried"))
    runs = [measured(1, leader=Load(writes=3, bytes=300)), measured(2)]
    assert figures(variant, runs).zookeeper["leader"].per_change["writes"] == 1.5
    none = [measured(1, counts={"isr_changes": 0})]
    assert figures(variant, none).zookeeper["leader"].per_change["writes"] is None


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        (("--set-b", B), [A, B]),
        (
            ("--guard-b", "isr-change-notifications=off"),
            ["isr-change-notifications=on", "isr-change-notifications=off"],
        ),
    ],
)
def test_sides_are_named_by_what_differs(
    isr: Isr, arguments: tuple[str, ...], names: list[str]
) -> None:
    code, found, _ = isr.compare(*arguments, "--seed", "3", "--seeds", "1", "--quiet")
    assert (code, list(found["paths"])) == (0, names)


def test_no_play_is_kept_under_the_name_of_a_shipped_scenario(isr: Isr) -> None:
    isr("compare", "flapping", "--seed", "3", "--seeds", "1", "--quiet")
    kept = {folder.name for folder in Path("runs").iterdir()} - {"latest"}
    assert kept == {"flapping-compare", "flapping-compare-zk", "flapping-compare-rpc"}
    assert not kept & set(shipped.shipped())
