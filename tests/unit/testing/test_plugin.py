"""The plug-in as another project meets it: its own pytest, its own tests, nothing configured."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow  # each starts pytest in a process of its own

DOCUMENT = Path(__file__).parents[3] / "docs" / "races.md"


def run_pytest(folder: Path, text: str, *options: str) -> tuple[int, str]:
    (folder / "test_race.py").write_text(text)
    (folder / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers -p no:cacheprovider\n")
    plugin = ("-p", "emulator.testing.plugin")
    command = (sys.executable, "-m", "pytest", "-q", *plugin, *options, str(folder))
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, timeout=120
    )
    return done.returncode, done.stdout + done.stderr


def documented() -> str:
    found = re.search(r"```python\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    assert found is not None
    return found[1]


def test_the_documented_example_is_ten_lines_and_holds(tmp_path: Path) -> None:
    text = documented()
    assert len(text[text.index("@pytest") :].splitlines()) <= 10
    code, said = run_pytest(tmp_path, text)
    assert (code, "3 passed" in said) == (0, True), said


INSTALLED = """\
import sys
sys.path.insert(0, {site!r})
import pytest
code = pytest.main(["-q", "-p", "no:cacheprovider", "--strict-markers", "--rootdir=.", "."])
import emulator.testing.cluster
print("from", emulator.testing.cluster.__file__)
sys.exit(code)
"""


def test_the_documented_example_holds_with_the_installed_package(tmp_path: Path) -> None:
    """A wheel of this project, in another one's folder: pytest finds the plug-in by itself."""
    site, folder = tmp_path / "site", tmp_path / "other"
    folder.mkdir()
    pip = (sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation")
    subprocess.run([*pip, "--target", str(site), str(DOCUMENT.parents[1])], check=True, timeout=300)
    (folder / "test_race.py").write_text(documented())
    command = (sys.executable, "-I", "-c", INSTALLED.format(site=str(site)))
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, timeout=300
    )
    assert (done.returncode, "3 passed" in done.stdout) == (0, True), done.stdout + done.stderr
    assert f"from {site}" in done.stdout


FAILS = """\
import pytest

@pytest.mark.seeds(2)
def test_it(cluster, isr_seed):
    cluster.topic("orders", (1, 2)).do("cut 1 2")
    held = cluster.hold(1, "zookeeper", "setData", "/brokers/topics/orders")
    cluster.send(1)
    held.wait()
    assert isr_seed != 1
"""


def test_a_failure_tells_its_seed_its_schedule_and_how_to_repeat_it(tmp_path: Path) -> None:
    code, said = run_pytest(tmp_path, FAILS)
    assert code == 1
    assert "1 failed, 1 passed" in said
    told = said[said.index("isr: seed and schedule") :].splitlines()
    assert told[1] == "seed 1"
    assert any("broker 1  cut_link peer=2" in line for line in told)
    assert any("held: zookeeper setData /brokers/topics/orders" in line for line in told)
    (again,) = [line for line in told if line.startswith("repeat it: ")]
    assert again.endswith("--isr-seed 1")
    code, said = run_pytest(tmp_path, FAILS, "--isr-seed", "0")
    assert (code, "1 passed" in said) == (0, True)


BREAKS = """\
import pytest

UNFENCED = {"fenced-controller-writes": False}
STATE = "/brokers/topics/orders/partitions/0/state"

def zombie(cluster):
    cluster.topic("orders", (1, 2)).send(1).run_ms(300)
    write = cluster.hold(3, "zookeeper", "setData", STATE)
    cluster.do("kill 2")
    write.wait()
    cluster.do("start 2").run_ms(1000)
    cluster.hold(3, "checkpoint", "controller_event")
    cluster.do("delete_controller").run_ms(1000)
    write.release()
    cluster.run_ms(500)

@pytest.mark.cluster(brokers=(3, 1, 2), guards=UNFENCED)
def test_unexpected(cluster):
    zombie(cluster)

@pytest.mark.cluster(brokers=(3, 1, 2), guards=UNFENCED, violates="state has one writer")
def test_expected(cluster):
    zombie(cluster)

@pytest.mark.cluster(violates="leader in isr")
def test_expected_in_vain(cluster):
    pass
"""


def test_a_broken_invariant_fails_a_test_that_did_not_expect_it(tmp_path: Path) -> None:
    code, said = run_pytest(tmp_path, BREAKS, "-rA")
    assert code == 1
    assert "PASSED" in said
    assert "state has one writer   orders-0: broker 3 elects, but" in said
    assert "expected violations did not occur: leader in isr" in said
    assert len(re.findall(r"^ERROR ", said, re.MULTILINE)) == 2


def test_a_mark_with_a_word_that_it_does_not_know_says_so(tmp_path: Path) -> None:
    text = (
        "import pytest\n@pytest.mark.cluster(broker=1)\ndef test_it(cluster):\n    assert cluster\n"
    )
    code, said = run_pytest(tmp_path, text)
    assert code == 1
    assert "@pytest.mark.cluster has no option broker" in said


VIRTUAL = """\
def test_it(virtual_time):
    said = []

    async def body():
        await virtual_time.kernel.sleep(3_000_000_000)
        said.append(virtual_time.now_ms)

    virtual_time.spawn("sleeper", body())
    virtual_time.run(1000)
    assert said == []
    virtual_time.run()
    assert said == [3_000_000]
"""


def test_virtual_time_jumps(tmp_path: Path) -> None:
    code, said = run_pytest(tmp_path, VIRTUAL)
    assert (code, "1 passed" in said) == (0, True), said


TYPOS = """\
import pytest
from emulator.trace import events

def test_place(cluster):
    cluster.hold(1, "zookeper", "setData")

def test_broker(cluster):
    cluster.hold(9, "zookeeper", "setData")

def test_peer(cluster):
    cluster.hold(1, "zookeeper", "setData", peer=2)

def test_field(cluster):
    cluster.seen(events.IsrUpdated, brokr=1)

def test_until(cluster):
    cluster.until_seen(events.IsrUpdated, brokr=1)
"""


def test_a_typo_is_an_error(tmp_path: Path) -> None:
    code, said = run_pytest(tmp_path, TYPOS)
    assert (code, "5 failed" in said) == (1, True), said
    assert "hold at 'zookeper': did you mean zookeeper?" in said
    assert "hold: unknown broker 9 (brokers: 1, 2, 3)" in said
    assert "hold: a zookeeper has no peer" in said
    assert said.count("IsrUpdated has no field brokr; did you mean broker?") >= 2


UNREACHED = """\
def test_nothing_comes(cluster):
    cluster.hold(2, "zookeeper", "setDate")
    cluster.run_ms(100)

def test_perhaps(cluster):
    cluster.hold(2, "zookeeper", "setDate", maybe=True)
    cluster.run_ms(100)
"""


def test_a_hold_that_nothing_reached_fails_a_test_unless_it_says_maybe(tmp_path: Path) -> None:
    code, said = run_pytest(tmp_path, UNREACHED)
    assert code == 1
    assert "2 passed, 1 error" in said
    assert "nothing reached the hold point (at zookeeper setDate of broker-2)" in said
