"""The pytest plug-in: fixtures `cluster`, `zookeeper`, `virtual_time`, and two marks.

`@pytest.mark.cluster(...)` configures the cluster of a test, `@pytest.mark.seeds(20)` runs it with
20 seeds. A failing test shows its seed, the schedule and the command that repeats it. A violated
invariant fails a test whose own assertions hold. Every project that installs the emulator loads
this module, so heavy imports wait until a test needs them.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import pluggy

    from emulator.testing.cluster import Cluster
    from emulator.testing.virtual_time import VirtualTime

SEED = 1
TIME_SCALE = 1
"""For a real server; virtual time needs no scaling. At 4, a session of 2 s would expire when the
machine is busy for half a second, and the controller would change unexpectedly."""

_MARKS = (
    "cluster(brokers, profile, guards, config, ...): docs/races.md lists all options",
    "seeds(number): run this test with that many seeds",
)
_CLUSTER: pytest.StashKey[Cluster] = pytest.StashKey()
_KNOWN = frozenset(
    {
        "brokers",
        "profile",
        "guards",
        "broker_profiles",
        "propagation",
        "config",
        "time_scale",
        "violates",
        "tolerates",
    }
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--isr-seed 7`: run with that seed only."""
    group = parser.getgroup("isr", "Kafka's replication control plane, emulated")
    group.addoption(
        "--isr-seed", type=int, default=None, help="run only with this seed of `cluster`"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marks for --strict-markers."""
    for mark in _MARKS:
        config.addinivalue_line("markers", mark)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test with `seeds` once per seed."""
    mark = metafunc.definition.get_closest_marker("seeds")
    only: int | None = metafunc.config.getoption("--isr-seed")
    if "isr_seed" not in metafunc.fixturenames or (mark is None and only is None):
        return
    seeds = range(mark.args[0]) if mark is not None else ()
    chosen = [only] if only is not None else list(seeds)
    metafunc.parametrize("isr_seed", chosen, ids=[f"seed={seed}" for seed in chosen])


@pytest.fixture
def isr_seed() -> int:
    """The seed of `cluster`."""
    return SEED


@pytest.fixture
def zookeeper() -> str:
    """Which ZooKeeper `cluster` runs on: `simulated`. A test (or a conftest) that parametrizes it
    may say `embedded`, a server of its own that needs Java, or `HOST:PORT/chroot`."""
    return "simulated"


@pytest.fixture
def cluster(
    request: pytest.FixtureRequest, zookeeper: str, isr_seed: int, tmp_path: Path
) -> Iterator[Cluster]:
    """A running cluster, configured by the mark. At the end the invariants that the mark expects
    (`violates`) must be violated; apart from those and `tolerates`, all must hold."""
    from emulator.testing.cluster import SETTINGS, Cluster, scenario_of

    options = _cluster_options(request.node)
    violates, tolerates = (_names(options.pop(key, ())) for key in ("violates", "tolerates"))
    scale = options.pop("time_scale", TIME_SCALE)
    brokers, config = options.pop("brokers", (1, 2, 3)), options.pop("config", {})
    scenario = scenario_of(*brokers, settings={**SETTINGS, **config}, **options)
    target = {"zookeeper": zookeeper, "time_scale": scale}
    with Cluster(scenario, isr_seed, data_dir=tmp_path / "zookeeper", **target) as made:
        request.node.stash[_CLUSTER] = made
        yield made
        _check_invariants(made, violates, tolerates)


def _cluster_options(node: pytest.Item) -> dict[str, Any]:
    mark = node.get_closest_marker("cluster")
    if mark is None:
        return {}
    unknown = sorted(set(mark.kwargs) - _KNOWN)
    if unknown or mark.args:
        word = unknown[0] if unknown else "a value without a name"
        raise pytest.UsageError(f"{node.nodeid}: @pytest.mark.cluster has no option {word}")
    return dict(mark.kwargs)


def _names(names: str | Iterable[str]) -> frozenset[str]:
    return frozenset((names,) if isinstance(names, str) else names)


def _check_invariants(
    cluster: Cluster, expected: frozenset[str], tolerated: frozenset[str]
) -> None:
    """Fail the test for violations, with their causes and the names of known hazards."""
    from emulator.view.chains import EventDescriber, headline

    broken = cluster.session.listeners.broken()
    others = [one for one in broken if one.invariant not in expected | tolerated]
    if others:
        describer, lines = EventDescriber(cluster.events), []
        for one in others:
            lines += ["".join(headline(one)), *(f"    {line}" for line in describer.story(one))]
        pytest.fail("\n".join(lines), pytrace=False)
    if unreached := cluster.unreached:
        places = "; ".join(held.words for held in unreached)
        pytest.fail(
            f"nothing reached the hold point ({places}); pass maybe=True if that is allowed",
            pytrace=False,
        )
    missing = sorted(expected - {one.invariant for one in broken})
    if missing:
        pytest.fail(f"expected violations did not occur: {', '.join(missing)}", pytrace=False)


@pytest.fixture
def virtual_time() -> Iterator[VirtualTime]:
    """An empty kernel in virtual time, for code that blocks on kernel primitives."""
    from emulator.testing.virtual_time import VirtualTime

    with VirtualTime() as made:
        yield made


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pluggy.Result[pytest.TestReport], None]:
    """Add the seed and the schedule to the report of a failed test."""
    outcome = yield
    report = outcome.get_result()
    made = item.stash.get(_CLUSTER, None)
    if made is None or not report.failed:
        return
    where = item.nodeid.partition("[")[0]
    again = f"repeat it: pytest '{where}' --isr-seed {made.seed}"
    if made.zookeeper != "simulated":
        again += "   (on a real ZooKeeper the result may differ)"
    text = "\n".join([f"seed {made.seed}", *made.schedule, again])
    report.sections.append(("isr: seed and schedule", text))
