"""The pytest plug-in: fixtures `cluster`, `zookeeper`, `virtual_time`, and two marks.

`@pytest.mark.cluster(...)` says what kind of cluster a test wants, `@pytest.mark.seeds(20)` runs it
under many seeds. A test that fails shows its seed, the schedule and the command that repeats it; a
broken invariant fails a test whose own assertions hold. Loaded by pytest in every project that
installs the emulator, so what is heavy is imported when a test asks for it. Knows no test.
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
"""On a real server; virtual time needs none. At 4 a session of 2 s ends when the machine is busy
elsewhere for half a second, and the test sees another controller than it expects."""

_MARKS = (
    "cluster(brokers, profile, guards, config, ...): what `cluster` is; docs/races.md lists all",
    "seeds(number): run this test under that many seeds",
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
    """`--isr-seed 7` runs what is drawn under that seed only."""
    group = parser.getgroup("isr", "Kafka's replication control plane, emulated")
    group.addoption("--isr-seed", type=int, default=None, help="the one seed of `cluster`")


def pytest_configure(config: pytest.Config) -> None:
    """The marks are known to --strict-markers."""
    for mark in _MARKS:
        config.addinivalue_line("markers", mark)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test with `seeds` is as many tests."""
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
    """A cluster that is up, as the mark says; by the end no invariant may be broken but those that
    the mark expects (`violates`), and those must be, or allows (`tolerates`)."""
    from emulator.testing.cluster import SETTINGS, Cluster, scenario_of

    asked = _asked(request.node)
    violates, tolerates = (_names(asked.pop(key, ())) for key in ("violates", "tolerates"))
    scale = asked.pop("time_scale", TIME_SCALE)
    brokers, config = asked.pop("brokers", (1, 2, 3)), asked.pop("config", {})
    scenario = scenario_of(*brokers, settings={**SETTINGS, **config}, **asked)
    options = {"zookeeper": zookeeper, "time_scale": scale}
    with Cluster(scenario, isr_seed, data_dir=tmp_path / "zookeeper", **options) as made:
        request.node.stash[_CLUSTER] = made
        yield made
        _judge(made, violates, tolerates)


def _asked(node: pytest.Item) -> dict[str, Any]:
    mark = node.get_closest_marker("cluster")
    if mark is None:
        return {}
    unknown = sorted(set(mark.kwargs) - _KNOWN)
    if unknown or mark.args:
        word = unknown[0] if unknown else "a value without a name"
        raise pytest.UsageError(f"{node.nodeid}: @pytest.mark.cluster does not know {word}")
    return dict(mark.kwargs)


def _names(given: str | Iterable[str]) -> frozenset[str]:
    return frozenset((given,) if isinstance(given, str) else given)


def _judge(cluster: Cluster, expected: frozenset[str], tolerated: frozenset[str]) -> None:
    """What is broken is told with its facts; what Kafka itself gets wrong there, by name."""
    from emulator.view.chains import Teller, headline

    broken = cluster.session.listeners.broken()
    others = [one for one in broken if one.invariant not in expected | tolerated]
    if others:
        teller, lines = Teller(cluster.events), []
        for one in others:
            lines += ["".join(headline(one)), *(f"    {line}" for line in teller.story(one))]
        pytest.fail("\n".join(lines), pytrace=False)
    if unreached := cluster.unreached:
        places = "; ".join(held.words for held in unreached)
        pytest.fail(
            f"nothing came to what was held ({places}); may it not? maybe=True", pytrace=False
        )
    missing = sorted(expected - {one.invariant for one in broken})
    if missing:
        pytest.fail(f"not broken, though expected: {', '.join(missing)}", pytrace=False)


@pytest.fixture
def virtual_time() -> Iterator[VirtualTime]:
    """A kernel in virtual time with nothing on it: for code that blocks on kernel primitives."""
    from emulator.testing.virtual_time import VirtualTime

    with VirtualTime() as made:
        yield made


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pluggy.Result[pytest.TestReport], None]:
    """A test that fails says its seed and what was done in which order."""
    outcome = yield
    report = outcome.get_result()
    made = item.stash.get(_CLUSTER, None)
    if made is None or not report.failed:
        return
    where = item.nodeid.partition("[")[0]
    again = f"repeat it: pytest '{where}' --isr-seed {made.seed}"
    if made.zookeeper != "simulated":
        again += "   (a real ZooKeeper: it need not come out the same)"
    text = "\n".join([f"seed {made.seed}", *made.schedule, again])
    report.sections.append(("isr: seed and schedule", text))
