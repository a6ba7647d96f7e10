"""Random worlds as `isr fuzz` plays them: nothing of ours fails, the same everywhere, and what is
broken on purpose is found, kept and played again."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from threading import Event

import msgspec
import pytest
import yaml

from emulator.cli import execute
from emulator.kafka.broker import partition
from emulator.runs.play import SIMULATED
from emulator.runs.session import Request, play_run
from emulator.scenario.load import loads
from emulator.scenario.version import VersionOptions
from emulator.search.fuzz.shrink import shrink
from emulator.search.fuzz.trial import EVENTS_MAX, Endless, Trial, alarm, try_seed, try_world
from emulator.search.fuzz.worlds import draw_world
from tests.sim.other_process import digests_elsewhere

SOME, SEEDS = 8, 24
SLOW = [pytest.param(seed, marks=pytest.mark.slow) for seed in range(SOME, SEEDS)]


@pytest.mark.parametrize("seed", [*range(SOME), *SLOW])
def test_nothing_of_ours_fails(seed: int) -> None:
    assert try_seed(seed).ours == ()


ONCE_WITHOUT_A_NAME = [
    (0x894C0018, "2.6", "zk", "lossy restart"),
    # Instead of three of 1.0 that show other worlds since Kafka's own tests were restated.
    (0x40010220, "1.0", "zk", "KAFKA-1120"),
    (0x40010283, "1.0", "zk", "KAFKA-1120"),
    (0xB9532239, "2.7", "rpc", "KAFKA-12686"),
    (0x20271013, "0.9.0", "zk", "KAFKA-4485"),
    (0x20274015, "1.1", "zk", "lossy restart"),
    (0x20280067, "2.1", "zk", "lossy restart"),
    (0x202800A8, "0.8.2", "zk", "KAFKA-7414"),
    (0x2051001F, "0.9.0", "zk", "KAFKA-3175"),
    (0x20800038, "1.0", "zk", "KAFKA-9672"),
    (0xA210007B, "2.1", "zk", "late UpdateMetadata"),
    (0x42000005, "3.3", "rpc", "KAFKA-14704"),
    (0x510000D9, "0.9.0", "zk", "KAFKA-7414"),
    (0x2064001B, "1.0", "zk", "KAFKA-6082"),
    (0x2064017E, "2.6", "zk", "deleted while reassigned"),
    (0x20700006, "2.8", "rpc", "own AlterIsr write"),
    (0x20700004, "2.7", "rpc", "KAFKA-12686"),
    (0x207006AD, "2.1", "zk", "lossy restart"),
    (0x207007BC, "2.8", "rpc", "KAFKA-14010"),
    (0x20740080, "0.8.2", "zk", "KAFKA-972"),
    (0xC0A64002, "0.9.0", "zk", "ISR member not validated"),
    (0x361000DF, "0.9.0", "zk", "KAFKA-1120"),
    # Instead of 0x361000DD, which shows another world with latencies 32.
    (0x3B000154, "0.9.0", "zk", "KAFKA-6082"),
    (0x3620006A, "0.9.0", "zk", "KAFKA-4229"),
    (0x5400005D, "0.9.0", "zk", "KAFKA-4447"),
    (0x3200002B, "1.0", "zk", "KAFKA-6082"),
    (0x32000181, "0.8.2", "zk", "lock held across ZooKeeper"),
    (0x36200288, "0.10.2", "zk", "announced by a deposed controller"),
    (0x36000939, "2.6", "zk", "overwritten assignment"),
    (0x3A00018B, "2.1", "zk", "KAFKA-7235"),
    (0x3A000208, "1.1", "zk", "lossy restart"),
    (0x3A000474, "2.7", "rpc", "missed deletion"),
    (0x3A000680, "0.8.2", "zk", "lock held across ZooKeeper"),
    (0x3A000680, "0.8.2", "zk", "KAFKA-2143"),
    (0x3A000696, "0.8.2", "zk", "lossy restart"),
    (0x37000355, "2.1", "zk", "not told while shutting down"),
    (0x3B0005C8, "0.9.0", "zk", "KAFKA-5758"),
    (0x3B0007B2, "0.9.0", "zk", "KAFKA-5758"),
    (0x40010023, "1.0", "zk", "KAFKA-6082"),
    (0x40010040, "1.0", "zk", "KAFKA-7152"),
    (0x520002B0, "0.8.2", "zk", "dead member elected"),
    (0x52000008, "0.8.2", "zk", "KAFKA-6082"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "profile", "propagation", "hazard"), ONCE_WITHOUT_A_NAME)
def test_what_fresh_seeds_have_shown_has_a_name(
    seed: int, profile: str, propagation: str, hazard: str
) -> None:
    trial = try_seed(seed, VersionOptions(profile, propagation=propagation))
    assert trial.ours == ()
    assert hazard in {failure.hazard for failure in trial.failures}


MISTAKES_OF_INVARIANTS = [
    (0x320001A4, "0.9.0", "zk"),
    (0x3200035B, "3.3", "rpc"),
    (0x36000245, "2.1", "zk"),
    (0x3600099F, "2.8", "zk"),
    (0x38000126, "0.8.2", "zk"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "profile", "propagation"), MISTAKES_OF_INVARIANTS)
def test_what_an_invariant_once_took_for_a_failure_is_none(
    seed: int, profile: str, propagation: str
) -> None:
    assert try_seed(seed, VersionOptions(profile, propagation=propagation)).ours == ()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "profile", "hazard"),
    [
        (0x203200A2, "0.8.2", "KAFKA-6082"),
        (0x2031000E, "1.1", "KAFKA-7482"),
        (0x20530220, "2.1", "KAFKA-9212"),
    ],
)
def test_what_fresh_seeds_with_disk_faults_have_shown_has_a_name(
    seed: int, profile: str, hazard: str
) -> None:
    trial = try_seed(seed, VersionOptions(profile), storage=True)
    assert trial.ours == ()
    assert hazard in {failure.hazard for failure in trial.failures}


def test_a_seed_is_the_same_run_in_processes_that_hash_differently() -> None:
    seeds = (0, 1)
    here = [try_seed(seed, digest=True).digest for seed in seeds]
    assert [digests_elsewhere(seeds, hashing) for hashing in (0, 7)] == [here, here]


def test_a_world_played_as_a_scenario_is_the_same_run(tmp_path: Path) -> None:
    tried = try_seed(3)
    scenario = loads(draw_world(3), "drawn")
    played = play_run(Request(scenario=scenario, seed=3, zookeeper=SIMULATED, base=tmp_path))
    assert played.summary.verdict in ("held", "unknown")
    assert played.events[tried.events - 1].t == tried.virtual_us


def broken_high_watermark(leo: int, *_: object) -> int:
    """The high watermark does not wait for followers."""
    return leo


def test_what_is_broken_on_purpose_is_found_kept_and_played_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(partition, "high_watermark_allowed", broken_high_watermark)
    runs = str(tmp_path)
    assert execute(["fuzz", "--seed", "0", "--runs", "8", "--out", runs]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2].startswith("seed           0x")
    assert lines[-1].startswith("repeat it      isr run ")
    command = lines[-1].removeprefix("repeat it      isr ").split()
    assert execute([*command, "--quiet", "--out", runs]) == 1
    assert "BROKEN    hw within isr" in capsys.readouterr().out


@pytest.mark.slow
def test_a_failing_world_is_made_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition, "high_watermark_allowed", broken_high_watermark)
    before = draw_world(6)
    assert "hw within isr" in {failure.invariant for failure in try_world(before, 6).ours}
    after = shrink(before, 6)
    assert "hw within isr" in {failure.invariant for failure in try_world(after, 6).ours}
    small, large = yaml.safe_load(after), yaml.safe_load(before)
    assert small["faults"] == []
    assert len(small["workload"]) == 1 < len(large["workload"])
    assert len(small["topics"]) == 1


@pytest.mark.slow
def test_it_says_what_it_did_as_json(
    tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    arguments = ["fuzz", "--seed", "0x1", "--runs", "2", "--jobs", "2", "--json"]
    assert execute([*arguments, "--out", str(tmp_path)]) == 0
    said = msgspec.json.decode(capsysbinary.readouterr().out)
    assert (said["first_seed"], said["seeds"], said["failed"]) == (1, 2, [])
    assert said["events"] == sum(try_seed(seed).events for seed in (1, 2))


def test_ctrl_c_leaves_a_readable_result(tmp_path: Path) -> None:
    arguments = ["fuzz", "--seed", "0", "--runs", "100000", "--json", "--out", str(tmp_path)]
    program = f"import sys; from emulator.cli import execute; sys.exit(execute({arguments}))"
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stderr is not None
    assert process.stderr.readline() == b"seeds from 0x0\n"
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    said = msgspec.json.decode(output)
    assert (process.returncode, said["broken_off"], said["failed"]) == (2, True, [])


def test_a_run_without_end_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("emulator.search.fuzz.trial.EVENTS_MAX", 100)
    failures = try_seed(0).ours
    assert [failure.invariant for failure in failures] == ["a run without end"]
    assert EVENTS_MAX > 100
    assert issubclass(Endless, Exception)


def test_a_loop_that_makes_no_events_is_ended_by_what_it_computes_not_by_the_time_it_takes() -> (
    None
):
    def loop() -> None:
        while True:
            pass

    with alarm(0.05), pytest.raises(Endless, match=r"no end within 0\.05 s of computing"):
        loop()
    with alarm(0.05):
        assert not Event().wait(0.2)


def test_a_world_that_cannot_be_read_is_a_failure_and_no_crash() -> None:
    trial: Trial = try_world(draw_world(0).replace("brokers: [", "brokers: [9, 9, "), 0)
    assert [failure.invariant for failure in trial.ours] == ["an exception"]


def test_a_mistake_in_the_time_is_the_users(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["fuzz", "--time", "soon"]) == 64
    assert "--time soon" in capsys.readouterr().err
