"""Untrusted files: whatever a file unpacks to, reading it takes bounded memory and time."""

from __future__ import annotations

import gzip
import time
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from emulator.forensics.layouts import ENTRY_ROWS, ENVELOPES, LAYOUTS, Format
from emulator.forensics.log_files import LINE_BYTES, LogFile, find_logs
from emulator.scenario.errors import UserError

AS_KAFKA = Format(ENVELOPES[0], LAYOUTS[0])
FIRST = (
    b"[2026-11-22 03:00:00,001] INFO [Broker id=7] Handling LeaderAndIsr (state.change.logger)\n"
)
LONG = b"[2026-11-22 03:00:00,002] INFO " + b"x" * 3 * LINE_BYTES + b" (kafka.K)\n"


def test_of_a_long_line_the_rest_is_left_out_and_counted(tmp_path: Path) -> None:
    (tmp_path / "server.log").write_bytes(FIRST + LONG + FIRST)
    (file,) = find_logs([tmp_path])
    assert [line.text for line in file.lines()] == ["[Broker id=7] Handling LeaderAndIsr"] * 2
    assert file.unread == {
        "the rest of a line of more than 64 KB": 1,
        "no logger at its end": 1,
    }


def test_of_an_endless_entry_the_rest_is_left_out_and_counted(tmp_path: Path) -> None:
    """A tab and a bracket in each row: every one could be the end of the message."""
    endless = FIRST.replace(b" (state.change.logger)", b"") + b"\tat kafka)\n" * 50_000
    (tmp_path / "server.log").write_bytes(FIRST + endless + FIRST)
    began = time.process_time()
    (file,) = find_logs([tmp_path])
    assert len(list(file.lines())) == 2
    assert time.process_time() - began < 5
    assert file.unread[f"behind line {ENTRY_ROWS:,} of an entry"] == 50_001 - ENTRY_ROWS


@pytest.mark.slow
def test_a_line_of_1_gb_in_a_gzipped_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "server.log.1.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(FIRST)
        for _ in range(256):
            file.write(bytes(1 << 20))
    tracemalloc.start()
    with pytest.raises(UserError, match=r"server.log.1.gz: unpacks from [\d,]+ to more than"):
        list(LogFile(path, "server", "", AS_KAFKA).lines())
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 16 << 20


@pytest.mark.parametrize("suffix", ["xz", "zip", "zst", "bz2"])
def test_a_file_that_is_compressed_in_another_way_is_to_be_unpacked(
    suffix: str, tmp_path: Path
) -> None:
    (tmp_path / f"server.log.1.{suffix}").write_bytes(bytes(100))
    with pytest.raises(UserError, match=r"compressed; unpack it first \(only .gz is read\)"):
        find_logs([tmp_path])


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=300), packed=st.booleans())
def test_whatever_is_in_a_file_its_lines_are_read_or_counted(
    data: bytes, packed: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("logs")
    path = folder / ("server.log.gz" if packed else "server.log")
    path.write_bytes(gzip.compress(FIRST) + data if packed else FIRST + data)
    file = LogFile(path, "server", "", AS_KAFKA)
    lines = list(file.lines())
    assert lines or file.unread


def test_a_time_that_cannot_be_and_an_id_that_is_none_are_no_end_of_an_import(
    tmp_path: Path,
) -> None:
    """Both ended it with an internal error."""
    impossible = FIRST.replace(b"2026-11-22", b"2026-13-41")
    number = b"[2026-11-22 07:12:30,991] INFO [Controller id=" + b"9" * 5000 + b"] up (kafka.C)\n"
    (tmp_path / "server.log").write_bytes(FIRST + impossible + number)
    (file,) = find_logs([tmp_path])
    assert len(list(file.lines())) == 2
    assert file.unread == {"a time that cannot be": 1}
