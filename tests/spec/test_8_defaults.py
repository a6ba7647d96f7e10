"""Section 8 of the spec: defaults of settings, and the versions in which they changed.

Each line is a setting with its value from each release on; None: the setting does not exist.
Between two profiles the later one shows the change.
"""

from __future__ import annotations

import pytest

from emulator.kafka.model.config import KafkaConfig
from emulator.kafka.profiles.base import Profile, profiles
from emulator.kafka.profiles.guards.base import number
from emulator.scenario.actions.admin import CreateTopic
from emulator.scenario.actions.link import CutLink
from emulator.trace import events
from tests.spec.emulated import Emulated

OLDEST = "0.8.2"
ALWAYS: dict[str, str] = {
    "replica.fetch.wait.max.ms": "500",
    "replica.fetch.min.bytes": "1",
    "replica.fetch.max.bytes": "1048576",
    "replica.socket.timeout.ms": "30000",
    "replica.high.watermark.checkpoint.interval.ms": "5000",
    "num.replica.fetchers": "1",
    "min.insync.replicas": "1",
    "controller.socket.timeout.ms": "30000",
    "auto.leader.rebalance.enable": "true",
    "leader.imbalance.per.broker.percentage": "10",
    "leader.imbalance.check.interval.seconds": "300",
    "controlled.shutdown.enable": "true",
    "controlled.shutdown.max.retries": "3",
    "controlled.shutdown.retry.backoff.ms": "5000",
    "default.replication.factor": "1",
    "background.threads": "10",
    "num.io.threads": "8",
    "num.network.threads": "3",
}
CHANGED: dict[str, list[tuple[str, str | None]]] = {
    "replica.lag.time.max.ms": [(OLDEST, "10000"), ("2.5", "30000")],
    "replica.lag.max.messages": [(OLDEST, "4000"), ("0.9", None)],
    "controller.message.queue.size": [(OLDEST, "2147483647"), ("0.9", None)],
    "replica.fetch.response.max.bytes": [(OLDEST, None), ("0.10.1", "10485760")],
    "replica.fetch.backoff.ms": [(OLDEST, None), ("0.9", "1000")],
    "request.timeout.ms": [(OLDEST, None), ("0.9", "30000")],
    "zookeeper.session.timeout.ms": [(OLDEST, "6000"), ("2.5", "18000")],
    "zookeeper.max.in.flight.requests": [(OLDEST, None), ("1.1", "10")],
    "unclean.leader.election.enable": [(OLDEST, "true"), ("0.11", "false")],
    "delete.topic.enable": [(OLDEST, "false"), ("1.0", "true")],
    "fetch.max.bytes": [(OLDEST, None), ("2.5", "57671680")],
}
LINES = CHANGED | {name: [(OLDEST, value)] for name, value in ALWAYS.items()}


def in_release(changes: list[tuple[str, str | None]], release: str) -> str | None:
    return [value for since, value in changes if number(since) <= number(release)][-1]


@pytest.mark.parametrize("profile", profiles().values(), ids=lambda p: p.name)
@pytest.mark.parametrize("setting", LINES)
def test_8_a_version_begins_with_the_default_of_its_time(setting: str, profile: Profile) -> None:
    defaults, release = profile.defaults, profile.release
    assert defaults.get(setting) == in_release(LINES[setting], release)


@pytest.mark.parametrize("profile", profiles().values(), ids=lambda p: p.name)
def test_8_the_connection_time_out_is_the_sessions(profile: Profile) -> None:
    config = KafkaConfig.of(profile.values, {})
    assert config.zookeeper_connection_timeout_ms == config.zookeeper_session_timeout_ms


@pytest.mark.parametrize(("size", "created"), [(1, "ab"), (3, "abc"), (2**31 - 1, "abcd")])
def test_8_in_0_8_2_a_controller_waits_for_room_in_the_queue_of_a_broker(
    size: int, created: str
) -> None:
    """controller.message.queue.size: each topic costs broker 3 two requests, and one of all is
    being sent."""
    with Emulated(1, 2, 3, profile="0.8.2", controller_message_queue_size=size) as cluster:
        cluster.run_ms(1000).now_on().do(CutLink(1, 3))
        for name in "abcd":
            cluster.do(CreateTopic(name, ((2, 3),))).run_ms(1000)
        assert [e.partition.topic for e in cluster.seen(events.BecomesLeader)] == list(created)
