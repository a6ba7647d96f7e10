"""The section `hosts` of a scenario: where brokers run, and what is refused there."""

from __future__ import annotations

import pytest

from emulator.cli.parts.options import check_playable
from emulator.scenario.errors import ScenarioError, UserError
from emulator.scenario.load import LoadedScenario, loads
from emulator.scenario.schema import Host
from emulator.scenario.written import write_scenario

FAULT = "pause: {broker: 3}"


def scenario(hosts: str, fault: str = FAULT) -> LoadedScenario:
    return loads(f"hosts: {hosts}\nfaults: [{{at: 1s, {fault}}}]\nrun: 2s\n", "tried")


def check(target: str, hosts: str, fault: str = FAULT) -> None:
    where = "simulated" if target == "simulated" else "embedded"
    check_playable(scenario(hosts, fault), where, 1, target)


def test_hosts_are_read_and_written_as_they_were() -> None:
    read = scenario("{1: process, 2: container, 3: kafka 2.6.3}")
    hosts = {1: Host("process"), 2: Host("container"), 3: Host("kafka", "2.6.3")}
    assert read.hosts == hosts
    assert [str(host) for host in hosts.values()] == ["process", "container", "kafka 2.6.3"]
    assert loads(write_scenario(read, (), 1, settings={}), "again").hosts == hosts
    assert loads("run: 1s", "none").hosts == {}


@pytest.mark.parametrize(
    ("hosts", "message"),
    [
        ("{4: process}", "there is no broker 4; the cluster has 1, 2, 3"),
        ("{one: process}", "there is no broker -1"),
        ("{3: kafka}", "expected process, hollow, container or kafka VERSION, not 'kafka'"),
        ("{3: kafka 2}", "expected process, hollow, container or kafka VERSION"),
        ("{3: process 2.6.3}", "expected process, hollow, container or kafka VERSION"),
        ("{3: 2.6.3}", "expected process, hollow, container or kafka VERSION"),
    ],
)
def test_a_mistake_is_named_with_its_line(hosts: str, message: str) -> None:
    with pytest.raises(ScenarioError, match=message) as error:
        scenario(hosts)
    assert error.value.line == 1


@pytest.mark.parametrize(
    ("target", "hosts", "fault", "message"),
    [
        ("processes", "{3: kafka 0.10.2.1}", FAULT, "hosts.3: kafka 0.10.2.1: the others speak"),
        ("processes", "{3: kafka 4.1.0}", FAULT, "hosts.3: kafka 4.1.0: 0.8.2 to 3.9 can be run"),
        ("processes", "{3: container}", FAULT, "hosts.3: container: containers are not mixed"),
        ("containers", "{3: kafka 2.6.3}", FAULT, "hosts.3: kafka 2.6.3: containers are not mixed"),
        ("live", "{3: kafka 2.6.3}", FAULT, "hosts: on this target all brokers are in one process"),
        (
            "processes",
            "{3: kafka 2.6.3}",
            "fail_log_dir: 3",
            "fail log dir is not supported for real",
        ),
        (
            "processes",
            "{3: kafka 2.6.3}",
            "unplug: 3",
            "unplug is not supported for real processes",
        ),
        (
            "processes",
            "{3: process}",
            "fail_log_dir: 3",
            "is not supported for processes of their own",
        ),
    ],
)
def test_what_a_target_or_host_cannot_do_is_refused(
    target: str, hosts: str, fault: str, message: str
) -> None:
    with pytest.raises(UserError, match=message):
        check(target, hosts, fault)


def test_the_other_hosts_keep_what_they_can_do() -> None:
    check("processes", "{3: kafka 2.6.3}")
    check("processes", "{3: kafka 2.6.3}", "unplug: 2")
    check("processes", "{3: kafka 2.6.3}", "cut_link: {broker: 3, peer: 1}")
    check("containers", "{1: container}", "unplug: 3")
    check("simulated", "{3: kafka 2.6.3}", "fail_log_dir: 3")
