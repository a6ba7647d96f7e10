"""Random latencies: warm-up stage by stage, and at the machine's speed."""

from __future__ import annotations

from emulator.kernel.rng import Chance
from emulator.worlds.latency import (
    ALIKE,
    BACKLOG_MAX,
    TABLE,
    USUAL_BOOT_US,
    Latencies,
    Purpose,
)

EXACTLY = {ms: ((0.0, ms * 1000), (1.0, ms * 1000)) for ms in (1, 5, 30, 1000)}
STEPS = {
    "open": Purpose(EXACTLY[1], (1, EXACTLY[30]), (3, EXACTLY[5])),
    "boot": Purpose(EXACTLY[5], paced=True),
    "roles": Purpose(EXACTLY[1], (1, EXACTLY[30]), paced=True),
    "speed": Purpose(((0.0, 1000), (1.0, 1000))),
}


def of(latencies: Latencies, purpose: str, times: int = 1) -> list[int]:
    return [latencies(purpose, "broker-1") // 1000 for _ in range(times)]


def test_cold_code_warms_up_stage_by_stage_in_each_process() -> None:
    latencies = Latencies(Chance(1), STEPS)
    assert of(latencies, "open", 5) == [30, 5, 5, 1, 1]
    latencies.forget("broker-1")
    assert of(latencies, "open", 2) == [30, 5]


def test_a_restart_makes_the_code_of_all_threads_of_the_process_cold_again() -> None:
    latencies = Latencies(Chance(1), STEPS)
    threads = ("broker-1-fetcher-0", "broker-1/kafka-scheduler-0", "broker-10-fetcher-0")
    for thread in threads:
        latencies("open", thread)
    latencies.forget("broker-1")
    assert [latencies("open", thread) // 1000 for thread in threads] == [30, 30, 5]


def test_a_slow_boot_slows_its_own_steps_in_proportion_and_cold_code_by_the_root() -> None:
    latencies = Latencies(Chance(1), STEPS)
    latencies.set_boot_time("broker-1", 4 * USUAL_BOOT_US)
    assert of(latencies, "boot") == [20]
    assert of(latencies, "open", 4) == [60, 10, 10, 1]
    assert latencies("boot", "broker-2") == 5000, "another process boots at its own pace"


def test_cold_code_of_a_paced_row_goes_with_the_boot_and_not_with_its_root() -> None:
    latencies = Latencies(Chance(1), STEPS)
    latencies.set_boot_time("broker-1", 4 * USUAL_BOOT_US)
    assert of(latencies, "roles", 2) == [120, 4]


def test_every_row_grows_from_0_to_1_and_every_stage_ends_later_than_the_one_before() -> None:
    for name, row in TABLE.items():
        for quantiles in (row.warm, *(cold for _, cold in row.cold)):
            assert [q[0] for q in (quantiles[0], quantiles[-1])] == [0.0, 1.0], name
            assert list(quantiles) == sorted(quantiles), name
        stages = [uses for uses, _ in row.cold]
        assert stages == sorted(set(stages)), name


def waking(cost_us: int) -> Latencies:
    def exactly(us: int) -> Purpose:
        return Purpose(((0.0, us), (1.0, us)))

    rows = {
        "resume_window": exactly(10_000),
        "resume_thread": exactly(500),
        "resume_network": exactly(50),
        "resume_scheduler": exactly(200),
        "resume_backlog": exactly(cost_us),
        "resume_share": exactly(500),
    }
    return Latencies(Chance(1), rows)


def test_the_more_has_waited_the_longer_a_resumed_process_is_sluggish_and_its_fetchers_late() -> (
    None
):
    latencies = waking(1000)
    assert latencies.window("broker-1", 0) == 10_000
    assert latencies.thread("broker-1", "ReplicaFetcherThread-0-2") == 500
    assert latencies.window("broker-1", 40) == 50_000
    assert latencies.thread("broker-1", "ReplicaFetcherThread-0-2") == 500 + 40_000 // 2
    assert latencies.thread("broker-1", "data-plane-kafka-network-thread-0") == 50
    assert latencies.thread("broker-1", "kafka-scheduler/isr-expiration") == 200


def test_a_processs_first_resume_is_slower_than_later_ones() -> None:
    """Of recorded resumes, until the follower is back: median 15 ms, and 3 ms."""
    worlds = [Latencies(Chance(seed)) for seed in range(200)]

    def resume() -> int:
        late_us = 0
        for latencies in worlds:
            latencies.window("broker-1", 0)
            late_us += latencies.thread("broker-1", "ReplicaFetcherThread-0-2")
        return late_us

    first, second, third = resume(), resume(), resume()
    assert first > 3 * second
    assert first > 3 * third


def test_a_driver_is_late_by_nearly_the_same_time_in_all_its_rounds() -> None:
    latencies = Latencies(Chance(1))
    drivers = [[latencies.handover(f"producer-{n}") for _ in range(100)] for n in range(50)]
    assert max(min(rounds) for rounds in drivers) > 5000 + min(min(rounds) for rounds in drivers)
    near = sum(late - min(rounds) < 1000 for rounds in drivers for late in rounds)
    assert near > 0.8 * 50 * 100


def test_clients_give_up_on_connections_that_waited_too_long() -> None:
    latencies = waking(1000)
    assert latencies.window("broker-1", 10 * BACKLOG_MAX) == 10_000 + BACKLOG_MAX * 1000


def steps_of_two(latencies: Latencies, times: int, *, at_us: int) -> list[tuple[int, int]]:
    """What the same steps cost two brokers at about the same times."""
    return [
        (
            latencies.at(at_us + n * 2000, "zk_reply", "broker-1"),
            latencies.at(at_us + n * 2000, "zk_reply", "broker-2"),
        )
        for n in range(times)
    ]


def test_of_one_server_two_brokers_see_like_times_at_the_same_moment() -> None:
    """Recorded elections: both brokers attempt within 2 ms of each other."""
    evenly = ((0.0, 0), (1.0, 1000))
    rows = {
        "zk_reply": Purpose(evenly, (ALIKE["zk_reply"], evenly)),
        "speed": Purpose(((0.0, 1000), (1.0, 1000))),
    }
    alike = Latencies(Chance(1), rows)
    for actor in ("broker-1", "broker-2"):
        for _ in range(ALIKE["zk_reply"]):
            alike.at(0, "zk_reply", actor)
    pairs = steps_of_two(alike, 400, at_us=1_000_000)
    apart = sorted(abs(a - b) for a, b in pairs)
    assert apart[200] < 150, "drawn apart the median difference would be 290"
    drawn = [us for pair in pairs for us in pair]
    assert 400 < sum(drawn) / len(drawn) < 600, "and each alone has the row's own distribution"


def test_a_processs_first_requests_and_a_clients_own_sleep_are_its_own() -> None:
    evenly = {
        "zk_reply": Purpose(((0.0, 0), (1.0, 1000)), (30, ((0.0, 0), (1.0, 1000)))),
        "speed": Purpose(((0.0, 1000), (1.0, 1000))),
        "zk_reconnect": Purpose(((0.0, 0), (1.0, 1000))),
    }
    plain, shared = Latencies(Chance(1), evenly), Latencies(Chance(1), evenly)
    for purpose in ("zk_reply", "zk_reconnect"):
        for n in range(10):
            assert shared.at(n * 1000, purpose, "broker-1") == plain(purpose, "broker-1")
