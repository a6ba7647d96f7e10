"""Random faults on three brokers and three ZooKeeper servers in containers: a minute of them with
the container tests, half an hour in `make soak`.

Nothing that was acknowledged may be lost but to a hazard that Kafka has, by name; every process
lives but those that were ended, and those that Kafka itself gives up when they start; what was left
at ZooKeeper has been read; all views agree when all is healed.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from emulator.kafka.profiles.base import profiles
from emulator.kafka.profiles.guards.base import guards
from tests.clients.test_soak import soak
from tests.command import Isr
from tests.containers.conftest import left_by
from tests.harmless import is_harmless
from tests.long_world import draw_long_world

pytestmark = pytest.mark.containers

SEED = 2
SERVERS = 3
MINUTE, HALF_AN_HOUR = 60, 1800
LOST = ("committed records survive", "acknowledged is committed", "logs agree")
"""Invariants that speak of records that are gone."""


def cures() -> tuple[str, ...]:
    """Guards that 2.6 does not have."""
    has = profiles()["2.6"].guards
    return tuple(name for name, guard in guards().items() if guard not in has)


@pytest.mark.parametrize(
    ("seconds", "cured"),
    [
        (MINUTE, False),
        pytest.param(HALF_AN_HOUR, False, marks=pytest.mark.soak),
        pytest.param(HALF_AN_HOUR, True, marks=pytest.mark.soak),
    ],
)
def test_random_faults(isr: Isr, tmp_path: Path, seconds: int, cured: bool) -> None:
    text = draw_long_world(
        SEED,
        seconds,
        SERVERS,
        is_harmless,
        cures() if cured else (),
    )
    (tmp_path / "soak.yaml").write_text(text)
    _, out, err = isr(
        "run", tmp_path / "soak.yaml", "--target", "containers", "--json", "--out", tmp_path
    )
    assert out, err
    summary = json.loads(out)
    unexplained = [one for one in summary["violations"] if not one["hazard"]]
    assert unexplained == [], summary["run_directory"]
    assert summary["verdict"] == "held", summary
    if summary["lost"] or cured:
        _every_loss_has_a_name(summary["violations"], summary["lost"], cured=cured)
    _nobody_died_by_itself(Path(summary["run_directory"]))
    assert left_by() == []


@pytest.mark.soak
def test_what_real_clients_saw_of_containers(tmp_path: Path) -> None:
    words = ("--target", "containers", "--minutes", "4", "--seed", "5")
    code, result = soak(tmp_path, *words)
    assert result["history"]["findings"] == []
    assert (result["problems"], code in (0, 2)) == ([], True)
    assert result["history"]["acknowledged"] > 1000
    assert not {"disk", "jump_clock", "use_up_descriptors"} & set(result["faults"])
    assert left_by() == []


def _every_loss_has_a_name(violations: list[dict[str, str]], lost: int, *, cured: bool) -> None:
    named = [one for one in violations if one["invariant"] in LOST]
    assert bool(named) == bool(lost)
    assert not (cured and lost), "with the cures nothing is lost"


BAD_ENDS = (
    r"halted: (?!SIGTERM).*|Traceback.*"
    r"|cannot start: (?!ZooKeeperError: (?:NODE_EXISTS|OPERATION)).*"
)
"""A broker that starts while its old session lives, or without ZooKeeper, gives up, as Kafka does.
One that is terminated during its start ends at once."""


def _nobody_died_by_itself(run: Path) -> None:
    """A broker that ends says why; one that is killed says nothing."""
    for log in sorted((run / "processes").glob("broker-*.log")):
        said = log.read_text(errors="replace")
        assert "started at" in said
        assert re.findall(BAD_ENDS, said) == [], (log, said[-2000:])
