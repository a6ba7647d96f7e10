"""`isr calibrate` as a user meets it; no Kafka is started here."""

from __future__ import annotations

import json
from pathlib import Path

from emulator.cli.calibrate import SCRIPT
from emulator.scenario.load import loads
from emulator.worlds.real_kafka.capabilities import check_supported
from tests.cli.conftest import Isr

REAL = Path(__file__).resolve().parents[1] / "recordings" / "kafka-2.6.3"


def test_ranges_are_fitted_to_recordings_and_conform_says_that_it_used_them(
    isr: Isr, tmp_path: Path
) -> None:
    file = tmp_path / "lab.json"
    recordings = [REAL / "flapping", REAL / "shrink-expand"]
    code, out, err = isr("calibrate", *recordings, "--seeds", 3, "--jobs", 1, "--out", file)
    assert code == 0, err
    lines = out.splitlines()
    assert any(line.startswith("decision to state write") for line in lines)
    assert any(line.startswith("  scaled by ") and "zk_request" in line for line in lines)
    assert any(line.startswith("  as declared: fewer than 20 delays") for line in lines)
    assert lines[-1].endswith(f"as declared; written to {file}")
    written = json.loads(file.read_text())
    assert written["recordings"] == [str(one) for one in recordings]
    for fit in written["fits"]:
        fit["factor"] = 8.0
    file.write_text(json.dumps(written))

    plain = ("conform", recordings[1], "--seeds", 2, "--jobs", 1, "--json")
    _, by_lab, err = isr(*plain, "--calibration", file)
    assert f"  calibration: {file}" in err
    _, by_declared, _ = isr(*plain)
    lab, declared = json.loads(by_lab), json.loads(by_declared)
    assert lab["calibration"] == str(file)
    assert declared["calibration"].startswith("the declared latencies")
    assert lab["timings"] != declared["timings"]


def test_a_file_that_is_no_calibration_and_options_that_contradict_each_other_are_one_line(
    isr: Isr, tmp_path: Path
) -> None:
    file = tmp_path / "lab.json"
    file.write_text("{}")
    recording = REAL / "shrink-expand"
    for words in (
        ("conform", recording, "--calibration", file),
        ("conform", recording, "--calibration", tmp_path / "missing.json"),
        ("conform", recording, "--guided", "--save", tmp_path / "x", "--calibration", file),
        ("calibrate", recording, "--kafka", "2.6.3"),
        ("calibrate", tmp_path),
        ("calibrate",),
    ):
        code, _, err = isr(*words)
        assert code == 64, words
        assert len(err.strip().splitlines()) == 1, err


def test_the_script_that_is_recorded_can_be_given_to_every_version() -> None:
    for version in ((0, 8, 2, 2), (2, 6, 3), (3, 9, 0)):
        script = loads(SCRIPT.read_text(), "calibration")
        check_supported(script, version)
        assert script.duration_us == 46_000_000
