"""A state folder of `isr fuzz`: killed at any byte it continues, and counts no seed twice."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from emulator.cli import execute
from emulator.kafka.broker import partition
from emulator.kafka.profiles.base import profiles
from emulator.scenario.errors import UserError
from emulator.search.fuzz.campaign import FINDINGS, TRIALS, Campaign
from emulator.search.fuzz.fuzz import every_version
from emulator.search.fuzz.trial import Trial, try_seed

Bytes = pytest.CaptureFixture[bytes]


def trial(seed: int) -> Trial:
    return Trial(seed, (), 10, 1_000_000, 5)


def seeds_in(path: Path) -> list[int]:
    lines = (path / TRIALS).read_bytes().splitlines()[1:]
    return [msgspec.json.decode(line, type=Trial).seed for line in lines]


def test_a_folder_that_was_cut_off_at_any_byte_goes_on_with_the_first_seed_that_is_missing(
    tmp_path: Path,
) -> None:
    with Campaign(tmp_path, 0x100) as campaign:
        for seed in range(0x100, 0x104):
            campaign.record(trial(seed))
    whole = (tmp_path / TRIALS).read_bytes()
    header = whole.index(b"\n") + 1
    for cut in range(header, len(whole) + 1):
        (tmp_path / TRIALS).write_bytes(whole[:cut])
        with Campaign(tmp_path, 0x999) as campaign:
            assert campaign.next_seed == 0x100 + whole[header:cut].count(b"\n")
            for seed in range(campaign.next_seed, 0x104):
                campaign.record(trial(seed))
        assert (tmp_path / TRIALS).read_bytes() == whole


def test_one_process_has_the_folder(tmp_path: Path) -> None:
    with (
        Campaign(tmp_path, 1),
        pytest.raises(UserError, match="another isr fuzz uses this folder"),
    ):
        Campaign(tmp_path, 1)


def test_what_is_no_list_of_trials_is_the_users(tmp_path: Path) -> None:
    for text in ("a note\n", "a note", '{"first_seed": 1}\n{}\n'):
        (tmp_path / TRIALS).write_text(text)
        with pytest.raises(UserError, match="not a list of trials"):
            Campaign(tmp_path, 1)
        assert (tmp_path / TRIALS).read_text() == text


def test_every_version_is_played() -> None:
    played = {(one.profile, one.propagation) for one in every_version()}
    assert {profile for profile, _ in played} == set(profiles())
    assert {propagation for _, propagation in played} == {"zk", "rpc"}


@pytest.mark.slow
def test_a_search_that_is_killed_goes_on_without_loss(tmp_path: Path, capfdbinary: Bytes) -> None:
    words = ["fuzz", "--seed", "0x70", "--every-version", "--state", str(tmp_path), "--jobs", "2"]
    program = f"import sys; from emulator.cli import execute; sys.exit(execute({words!r} + {{}}))"
    process = subprocess.Popen(
        [sys.executable, "-c", program.format(["--forever"])], start_new_session=True
    )
    until = time.monotonic() + 120
    while not (tmp_path / TRIALS).exists() or (tmp_path / TRIALS).read_bytes().count(b"\n") < 4:
        assert time.monotonic() < until
        with pytest.raises(subprocess.TimeoutExpired):  # nobody tells us of a line in its file
            process.wait(0.1)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    with (tmp_path / TRIALS).open("ab") as trials:
        fcntl.flock(trials, fcntl.LOCK_EX)  # its workers hold it until they end
    before = seeds_in(tmp_path)
    assert execute([*words, "--runs", "2", "--json"]) == 0
    after = seeds_in(tmp_path)
    assert after[: len(before)] == before
    assert after == list(range(0x70, 0x70 + len(before) + 2))
    assert f"{len(after)} seeds from 0x70, 0 failed" in (tmp_path / FINDINGS).read_text()
    version = every_version()[after[-1] % len(every_version())]
    assert msgspec.structs.replace(try_seed(after[-1], version), wall_ms=0) == _last(tmp_path)


def _last(path: Path) -> Trial:
    line = (path / TRIALS).read_bytes().splitlines()[-1]
    return msgspec.structs.replace(msgspec.json.decode(line, type=Trial), wall_ms=0)


@pytest.mark.slow
def test_a_failure_is_kept_once_and_found_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(partition, "high_watermark_allowed", lambda leo, *_: leo)
    words = ["fuzz", "--seed", "6", "--state", str(tmp_path)]
    assert execute([*words, "--runs", "8"]) == 1
    output = capsys.readouterr().out
    assert "the whole      isr fuzz --seed 0x6 --runs 1" in output
    kept = list((tmp_path / "fuzz").iterdir())
    assert len(kept) == 1
    page = (tmp_path / FINDINGS).read_text()
    assert "## 0x6\n\n    isr fuzz --seed 0x6 --runs 1\n" in page
    monkeypatch.undo()
    assert execute([*words, "--runs", "1"]) == 0
    assert seeds_in(tmp_path) == [6, 7]
    assert list((tmp_path / "fuzz").iterdir()) == kept


def test_forever_needs_a_folder_and_no_limit(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["fuzz", "--forever"]) == 64
    assert "--forever needs --state" in capsys.readouterr().err
    assert execute(["fuzz", "--every-version", "--profile", "2.6"]) == 64
    assert "--every-version: leave out --profile" in capsys.readouterr().err
