"""Every fault, workload and command with every target: unsupported ones are refused before anything
starts. docs/scenarios.md has the table.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from emulator.cli.parts.options import check_playable
from emulator.scenario.actions.base import actions
from emulator.scenario.errors import UserError
from emulator.scenario.load import LoadedScenario, load
from emulator.worlds.real_kafka.capabilities import check_supported
from tests.command import Isr

ROOT = Path(__file__).resolve().parents[2]
LINK = "broker: 1, peer: 2"

FORMS = {
    "create_topic": "{topic: u, assignment: [[1, 2]]}",
    "add_partitions": "{topic: t, assignment: [[2, 1]]}",
    "delete_topic": "t",
    "delete_records": "{topic: t, before: 1}",
    "reassign": "{topic: t, partition: 0, replicas: [2, 3]}",
    "preferred_election": "{partitions: [t-0]}",
    "unclean_election": "{partitions: [t-0]}",
    "topic_config": "{topic: t, config: {min.insync.replicas: 2}}",
    "broker_config": "{broker: 1, config: {leader.replication.throttled.rate: 1000}}",
    "break_connection": f"{{{LINK}, when: after}}",
    "produce": "{topic: t, partitions: [0], rate: 10}",
    "send": "{topic: t, partitions: [0]}",
    "produce_stop": "t",
    "consume": "{topic: t, partitions: [0]}",
    "delete_controller": "",
    "drop_connection": "{broker: 1, when: before}",
    "expire_session": "1",
    "fail_authentication": "1",
    "end_session": "1",
    "forget_session": "1",
    "hold": "{broker: 1, at: zookeeper}",
    "release": "{broker: 1, at: zookeeper}",
    "kill": "1",
    "crash": "{broker: 1, lose: disk}",
    "disk": "{broker: 1, fault: error, call: fsync}",
    "disk: {fault: full}": "{broker: 1, fault: full, free_bytes: 5000}",
    "mend_disk": "1",
    "crash: {lose: unflushed}": "{broker: 1, lose: unflushed}",
    "terminate": "1",
    "start": "{broker: 1, if_down: true}",
    "cut_link": f"{{{LINK}}}",
    "cut_link: {peer: zookeeper, ways: to_peer}": "{broker: 1, peer: zookeeper, ways: to_peer}",
    "heal_link": f"{{{LINK}}}",
    "delay_link": f"{{{LINK}, delay_ms: 5}}",
    "cut_zookeeper_link": "1",
    "heal_zookeeper_link": "1",
    "link_latency": f"{{{LINK}, low_ms: 1, typical_ms: 2, high_ms: 9}}",
    "fail_log_dir": "1",
    "repair_log_dir": "1",
    "lossy_link": f"{{{LINK}, loss: 0.1}}",
    "pause": "1",
    "pause: {server: zookeeper}": "{server: zookeeper}",
    "pause: {server: zookeeper-2}": "{server: zookeeper-2}",
    "resume": "1",
    "resume: {server: zookeeper}": "{server: zookeeper}",
    "resume: {server: zookeeper-2}": "{server: zookeeper-2}",
    "slow_follower": "{broker: 1, bytes_per_s: 1000}",
    "slow_disk": "{broker: 1, ms_per_append: 5}",
    "slow_link": f"{{{LINK}, bytes_per_s: 1000}}",
    "stop_zookeeper": "",
    "stop_zookeeper: zookeeper-2": "zookeeper-2",
    "start_zookeeper": "",
    "start_zookeeper: zookeeper-2": "zookeeper-2",
    "use_up_descriptors": "1",
    "free_descriptors": "1",
    "jump_clock": "{broker: 1, offset_ms: 3600000}",
    "unplug": "1",
    "plug_in": "1",
}
TARGETS = {
    "virtual time": ("--target", "simulated"),
    "live": ("--target", "live"),
    "live, not our server": ("--zookeeper", "127.0.0.1:1"),
    "processes": ("--target", "processes"),
    "containers, compose": ("--target", "containers"),
    "real Kafka": (),
}


def written(form: str, folder: Path) -> Path:
    """A scenario with this at 1 s, and an ensemble where it is about one of several servers."""
    name, servers = form.partition(":")[0], 3 if "zookeeper-2" in form else 1
    (folder / "s.yaml").write_text(
        f"cluster: {{brokers: 3, storage: files, zookeeper: {{servers: {servers}}}}}\n"
        "topics: {t: {partitions: [[1, 2]]}}\n"
        f"faults: [{{at: 1s, {name}: {FORMS[form]}}}]\nrun: 2s\n"
    )
    return folder / "s.yaml"


def refused(scenario: LoadedScenario, target: str) -> str:
    """The refusal; empty if the action is supported."""
    try:
        match TARGETS[target]:
            case ("--target", where):
                zookeeper = "simulated" if where == "simulated" else "embedded"
                check_playable(scenario, zookeeper, 1, where)
            case ("--zookeeper", address):
                check_playable(scenario, address, 1)
            case _:
                check_supported(scenario, (2, 6, 3))
    except UserError as why:
        return str(why)
    return ""


@cache
def table() -> dict[str, list[str]]:
    """The page's: for each form what is in the cells under the targets."""
    page = (ROOT / "docs" / "scenarios.md").read_text()
    section = page.partition("### What each target supports\n")[2].partition("\n## ")[0]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("|")]
    heads, _, *cells = [[cell.strip() for cell in row] for row in rows]
    assert heads[1:] == list(TARGETS)
    return {form: row[1:] for row in cells for form in re.findall(r"`([^`]+)`", row[0])}


def test_every_action_has_a_form() -> None:
    assert {form.partition(":")[0] for form in FORMS} == set(actions())
    assert set(table()) <= set(FORMS)


@pytest.mark.parametrize("form", FORMS)
def test_the_page_says_which_target_can_be_given_what(form: str, tmp_path: Path, isr: Isr) -> None:
    """Actions that are not in the table are supported everywhere. A refusal names the action and
    its time, and nothing was created."""
    path = written(form, tmp_path)
    scenario, name = load(path), form.partition(":")[0]
    said = {target: refused(scenario, target) for target in TARGETS}
    cells = table().get(form, ["yes"] * len(TARGETS))
    assert ["no" if why else "yes" for why in said.values()] == cells
    for target in (one for one, why in said.items() if why):
        assert f"{name} at 1 s" in said[target]
        if TARGETS[target]:
            words = ("run", path, *TARGETS[target], "--out", tmp_path / "runs")
            assert isr.fails(*words) == (64, f"isr: {said[target]}")
    assert [one.name for one in tmp_path.iterdir()] == ["s.yaml"]
