"""A server's log read as it grows: each entry once, however it is cut in pieces."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.zk.written_log import HEAD, PADDING, create, error, log, record, set_data
from zk.real.txnlog import Entry, LogTail, read_log

SESSION = 0x1000
SIZES = (0, 10, 16_000, 16_384, 40_000, 200_000, 1)


def records(first: int = 1) -> list[bytes]:
    """Small ones, and some that are longer than what is read at once."""
    transactions = [create("/a", b"x"), *(set_data("/a", bytes(n), n) for n in SIZES), error(-110)]
    return [record(SESSION, zxid, one) for zxid, one in enumerate(transactions, first)]


def test_a_log_that_is_not_there_yet_has_nothing(tmp_path: Path) -> None:
    tail = LogTail(tmp_path / "version-2")
    assert list(tail.read()) == []
    (tmp_path / "version-2").mkdir()
    assert list(tail.read()) == []


@pytest.mark.parametrize("padding", [b"", PADDING, bytes(100_000)])
def test_each_entry_comes_once_when_it_is_whole(tmp_path: Path, padding: bytes) -> None:
    tail, seen = LogTail(tmp_path), list[Entry]()
    file, whole = tmp_path / "log.1", log(records())[: -len(PADDING)]
    for length in (0, 3, 16, 60, 500, *range(1000, len(whole), 7_001), len(whole)):
        file.write_bytes(whole[:length] + (padding if length >= len(HEAD) else b""))
        new = list(tail.read())
        assert new == list(read_log(tmp_path))[len(seen) :]
        seen += new
        assert list(tail.read()) == []
    assert [entry.transaction.zxid for entry in seen] == list(range(1, len(records()) + 1))


def test_the_next_file_is_read_behind_the_rest_of_the_last(tmp_path: Path) -> None:
    tail, all_records = LogTail(tmp_path), records()
    (tmp_path / "log.1").write_bytes(log(all_records[:4]))
    assert len(list(tail.read())) == 4
    (tmp_path / "log.1").write_bytes(log(all_records))
    (tmp_path / "log.a").write_bytes(log(records(10)))
    (tmp_path / "log.13").write_bytes(log(records(19)))
    assert [entry.transaction.zxid for entry in tail.read()] == list(range(5, 28))
    assert list(tail.read()) == []


def test_a_record_whose_checksum_is_wrong_ends_it(tmp_path: Path) -> None:
    good = records()[:3]
    bad = bytearray(records()[3])
    bad[30] ^= 1
    (tmp_path / "log.1").write_bytes(log([*good, bytes(bad), *records()[4:]]))
    tail = LogTail(tmp_path)
    assert len(list(tail.read())) == 3
    assert list(tail.read()) == []


class Server:
    """Writes its log as FileTxnLog does: into a file that is laid out in advance."""

    def __init__(self, folder: Path, laid_out: int) -> None:
        self._folder, self._laid_out, self._zxid = folder, laid_out, 0

    def roll(self) -> None:
        """The next file."""
        self._file = self._folder / f"log.{self._zxid + 1:x}"
        self._file.write_bytes(HEAD + bytes(self._laid_out))
        self._at = len(HEAD)

    def write(self, size: int) -> int:
        """One transaction; its zxid."""
        self._zxid += 1
        added = record(SESSION, self._zxid, set_data("/a", bytes(size), self._zxid))
        with self._file.open("r+b") as file:
            file.seek(self._at)
            file.write(added)
        self._at += len(added)
        return self._zxid


@given(
    steps=st.lists(st.sampled_from([None, 0, 10, 300]), max_size=30), laid_out=st.integers(0, 2000)
)
def test_what_the_server_has_answered_is_read_wherever_it_stands(
    tmp_path_factory: pytest.TempPathFactory, steps: list[int | None], laid_out: int
) -> None:
    folder = tmp_path_factory.mktemp("version-2")
    server, tail, seen = Server(folder, laid_out), LogTail(folder), list[int]()
    server.roll()
    for size in steps:
        if size is None:
            if seen:
                server.roll()
            continue
        answered = server.write(size)
        seen += [entry.transaction.zxid for entry in tail.read_up_to(answered)]
        assert seen == list(range(1, answered + 1))
    tail.close()


def test_where_nothing_new_is_mapped_no_folder_is_looked_at(tmp_path: Path) -> None:
    server, tail = Server(tmp_path, 10_000), LogTail(tmp_path)
    server.roll()
    assert len(list(tail.read_up_to(server.write(5)))) == 1
    answered = server.write(5)
    tail._folder = tmp_path / "is not looked at"
    assert [entry.transaction.zxid for entry in tail.read_up_to(answered)] == [answered]
    tail.close()
