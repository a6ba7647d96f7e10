"""`isr import`, `isr report` and `isr record` as a user meets them; no Kafka is started here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.command import Isr
from tests.unit.forensics.strangers import SHRINK, STUCK, given, shift


def test_a_stuck_leader_from_its_logs_to_its_name(isr: Isr, tmp_path: Path) -> None:
    folder = given(STUCK, tmp_path / "logs")
    shift(folder, 1, 1700)
    code, out, _ = isr("import", folder, "--out", tmp_path / "runs")
    assert code == 0
    assert "broker 1    Kafka 2.6.3: 3 files" in out
    corrected = next(line for line in out.splitlines() if "broker-1 was" in line)
    assert "ms ahead" in corrected
    assert "corrected" in corrected
    code, out, _ = isr("report", tmp_path / "runs" / "latest")
    assert code == 1
    assert "orders-0 v1: leader 1 → 2, ISR [1,2,3] → [2,3]" in out
    assert "broker 1 truncates orders-0 to 209: 179 records" in out
    assert "KAFKA-2729  from 03:33:59." in out
    assert "cure: restart the broker" in out
    page = tmp_path / "report.html"
    code, out, _ = isr("report", tmp_path / "runs" / "latest", "--html", page)
    assert (code, "open it in a browser" in out) == (1, True)
    assert "<h2>KAFKA-2729" in page.read_text()
    assert "<td>orders-0 v1: leader 1 → 2, ISR [1,2,3] → [2,3]</td>" in page.read_text()
    code, out, _ = isr("check", tmp_path / "runs" / "latest")
    assert (code, "verdict   held" in out) == (0, True)


def test_a_healthy_cluster_as_json(isr: Isr, tmp_path: Path) -> None:
    code, out, _ = isr("import", given(SHRINK, tmp_path / "l"), "--out", tmp_path / "r", "--json")
    read = json.loads(out)
    assert (code, read["clocks"]["reference"], read["unknown"]) == (0, "zookeeper", [])
    assert {broker["version"] for broker in read["brokers"].values()} == {"2.6.3"}
    code, out, _ = isr("report", tmp_path / "r" / "latest", "--json")
    told = json.loads(out)
    assert (code, told["diagnoses"], told["stuck"]) == (0, [], [])
    assert [it["text"] for it in told["timeline"] if it["what"] == "isr"] == [
        "orders-0 v1: ISR [1,2,3] → [1,3]",
        "orders-0 v2: ISR [1,3] → [1,3,2]",
    ]


def test_a_report_on_an_emulated_run(isr: Isr, tmp_path: Path) -> None:
    isr("run", "leader-crash", "--zookeeper", "simulated", "--seed", "1", "--quiet",
        "--out", tmp_path)  # fmt: skip
    code, out, _ = isr("report", tmp_path / "latest")
    assert code == 0
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert "5.000 s broker the process of broker 1 dies" in lines
    assert "17.000 s broker broker 1 starts" in lines
    assert "orders-0 v1: leader 1 → 2" in out
    assert "no known hazard matched" in lines


def test_a_report_tells_of_a_pause_and_of_a_shutdown(isr: Isr, tmp_path: Path) -> None:
    for scenario, told in (
        ("shrink-and-expand", ("broker 2 is paused", "broker 2 is resumed")),
        ("controlled-shutdown", ("broker 1 shuts down", "broker 1 has ended")),
    ):
        isr("run", scenario, "--zookeeper", "simulated", "--seed", "1", "--quiet",
            "--out", tmp_path)  # fmt: skip
        out = isr("report", tmp_path / "latest")[1]
        assert all(text in out for text in told), out


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("import", "EMPTY"), "no log of Kafka's in or below it (state-change.log*"),
        (("import", "EMPTY", "--time-zone", "Mars/Crater"), "Mars/Crater: no such time zone"),
        (("import", "EMPTY", "--layout", "%d %p %m"), "%c is missing: the logger tells"),
        (("import", "EMPTY/nowhere"), "no such folder"),
        (("import", __file__), "is a file: give the folder that holds each broker's logs"),
        (("report", "EMPTY"), "not a run directory"),
        (("record", "shrink-and-expand"), "--kafka VERSION or --kafka-home DIR"),
        (("record", "shrink-and-expand", "--kafka", "4.1.0"), "4.0 has no ZooKeeper"),
        (("record", "shrink-and-expand", "--kafka-home", "EMPTY"), "no unpacked release"),
        (("record", "shrink-and-expnad", "--kafka", "2.6.3"), "shrink-and-expand"),
    ],
)
def test_a_mistake_is_one_line(
    arguments: tuple[str, ...], complaint: str, isr: Isr, tmp_path: Path
) -> None:
    given_now = [text.replace("EMPTY", str(tmp_path)) for text in arguments]
    code, line = isr.fails(*given_now)
    assert code == 64
    assert complaint in line
    assert list(tmp_path.iterdir()) == []


def test_a_action_that_cannot_be_given_is_told_before_anything_starts(
    isr: Isr, tmp_path: Path
) -> None:
    (tmp_path / "home" / "libs").mkdir(parents=True)
    (tmp_path / "home" / "libs" / "kafka_2.13-2.6.3.jar").touch()
    out = tmp_path / "runs"
    code, line = isr.fails("record", "slow-follower", "--kafka-home", tmp_path / "home",
                           "--out", out)  # fmt: skip
    assert code == 64
    assert "slow_follower at 5 s cannot be given to a real cluster" in line
    assert not out.exists()
