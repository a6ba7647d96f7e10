"""The CPU time of tests: `pytest -p tests.processor_times`, with -n or without.

Durations on a busy machine depend on its load. This prints the CPU time of each file and of the
most expensive tests, in seconds: of this process and the children it waited for. A fixture counts
for the test that first needed it.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Generator

import pytest

MOST = 60
PROPERTY = "processor_s"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    item.stash[_BEGAN] = _processor_s()
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if call.when == "teardown":
        report.user_properties.append((PROPERTY, _processor_s() - item.stash[_BEGAN]))
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    by_test: Counter[str] = Counter()
    by_file: Counter[str] = Counter()
    tests: Counter[str] = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            for name, value in getattr(report, "user_properties", ()):
                if name == PROPERTY:
                    by_test[report.nodeid] += value
                    by_file[report.nodeid.partition("::")[0]] += value
                    tests[report.nodeid.partition("::")[0]] += 1
    terminalreporter.section(f"processor time: {sum(by_file.values()):.1f} s")
    for path, seconds in by_file.most_common():
        terminalreporter.write_line(f"{seconds:8.2f} s  {tests[path]:5d} tests  {path}")
    terminalreporter.section("the most expensive tests")
    for test, seconds in by_test.most_common(MOST):
        terminalreporter.write_line(f"{seconds:8.2f} s  {test}")


_BEGAN = pytest.StashKey[float]()


def _processor_s() -> float:
    return sum(os.times()[:4])
