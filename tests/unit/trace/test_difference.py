"""Where two traces first differ."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from emulator.trace.difference import CONTEXT, compare_lines, compare_traces

UP = b'{"kind":"action_applied","t":3000,"do":"up"}'
LINES = st.lists(st.sampled_from([b"a", b"b", UP]), max_size=12)


@given(LINES)
def test_what_is_equal_does_not_differ(lines: list[bytes]) -> None:
    compared = compare_lines(lines, list(lines))
    assert (compared.events, compared.difference) == (len(lines), None)


@given(LINES, LINES)
def test_the_first_difference_comes_after_all_that_is_the_same(
    one: list[bytes], other: list[bytes]
) -> None:
    compared = compare_lines(one, other)
    same, found = compared.events, compared.difference
    assert one[:same] == other[:same]
    if found is None:
        assert one == other
        return
    assert found.event == same
    assert found.before == tuple(map(bytes.decode, one[:same][-CONTEXT:]))
    assert [found.first, found.second] == [
        lines[same].decode() if same < len(lines) else None for lines in (one, other)
    ]
    assert found.first != found.second
    assert found.up_us == (3000 if UP in one[:same] else None)


def test_of_files_headers_and_unfinished_last_lines_do_not_count(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.write_bytes(b"header 1\na\nb\nhalf a li")
    other.write_bytes(b"header 2\na\nb\n")
    assert compare_traces(one, other).difference is None
    other.write_bytes(b"header 2\na\nb\nc\n")
    found = compare_traces(one, other).difference
    assert found is not None
    assert (found.event, found.first, found.second) == (2, None, "c")
