"""The checker of a soak: histories that some log explains hold, and each planted contradiction is
seen, by its kind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.search.soak import checker
from emulator.search.soak.checker import HistoryVerdict, judge
from emulator.search.soak.history import Operation, merged_history, read_history

P = "orders-0"


class Story:
    """A history that is written line by line, a millisecond each."""

    def __init__(self) -> None:
        self.lines: list[Operation] = []

    def _add(self, op: str, client: str, **fields: object) -> Story:
        line = {"at_us": len(self.lines) * 1000, "client": client, "op": op, "partition": P}
        self.lines.append(msgspec.convert({**line, **fields}, Operation))
        return self

    def send(self, record: str) -> Story:
        return self._add("send", record.partition(".")[0], record=record)

    def acknowledged(self, record: str, offset: int) -> Story:
        return self._add("acknowledged", record.partition(".")[0], record=record, offset=offset)

    def failed(self, record: str) -> Story:
        return self._add("failed", record.partition(".")[0], record=record, error="timed out")

    def epoch(self, client: str) -> Story:
        return self._add("epoch", client)

    def read(self, offset: int, *records: str, client: str = "tail", scan: int = 0) -> Story:
        return self._add("read", client, offset=offset, records=records, scan=scan)

    def end(self, *records: str, start: int = 0) -> Story:
        """Everything is read once more, and that is all there is."""
        self.read(start, *records, client="final")
        return self._add("end", "final", offset=start, until=start + len(records))

    @property
    def verdict(self) -> HistoryVerdict:
        return judge(self.lines)

    @property
    def kinds(self) -> list[str]:
        return [finding.kind for finding in self.verdict.findings]


def sent(*records: str) -> Story:
    story = Story()
    for record in records:
        story.send(record)
    return story


def test_what_was_acknowledged_and_is_there_once_at_its_offset_is_well() -> None:
    story = sent("a.0", "a.1").acknowledged("a.0", 0).acknowledged("a.1", 1).end("a.0", "a.1")
    assert story.kinds == []
    assert story.verdict.acknowledged == 2


@pytest.mark.parametrize("log", [(), ("a.0",)])
def test_what_failed_may_be_there_or_not(log: tuple[str, ...]) -> None:
    assert sent("a.0").failed("a.0").end(*log).kinds == []


def test_an_acknowledged_record_that_is_gone_is_lost_between_its_last_sight_and_anothers() -> None:
    story = sent("a.0", "b.0").acknowledged("a.0", 0).read(0, "a.0").read(0, "a.0", client="x")
    story.read(0, "b.0", client="y").end("b.0")
    lost = next(one for one in story.verdict.findings if one.kind == checker.LOST)
    assert (lost.record, lost.offset, lost.from_us, lost.to_us) == ("a.0", 0, 4000, 5000)
    assert "offset 0 has b.0" in lost.text


def test_a_record_in_the_log_twice_is_duplicated() -> None:
    assert sent("a.0").acknowledged("a.0", 0).end("a.0", "a.0").kinds == [checker.DUPLICATED]


def test_what_its_client_sent_again_under_another_epoch_is_no_duplicate_of_the_brokers() -> None:
    story = sent("a.0", "b.0").epoch("a").acknowledged("a.0", 2).acknowledged("b.0", 1)
    story.end("a.0", "b.0", "a.0")
    assert (story.kinds, story.verdict.sent_again) == ([], 1)
    other = sent("a.0", "b.0").epoch("a").acknowledged("b.0", 1).end("a.0", "b.0", "b.0")
    assert other.kinds == [checker.DUPLICATED]


def test_a_record_at_another_offset_than_it_was_acknowledged_at_is_moved() -> None:
    story = sent("a.0", "a.1").acknowledged("a.0", 1).end("a.0", "a.1")
    assert story.kinds == [checker.MOVED]


def test_a_producers_records_in_another_order_are_reordered() -> None:
    assert sent("a.0", "a.1").end("a.1", "a.0").kinds == [checker.REORDERED]


def test_what_was_sent_after_an_acknowledgement_comes_behind_it() -> None:
    story = sent("a.0").acknowledged("a.0", 1).send("b.0").end("b.0", "a.0")
    assert story.kinds == [checker.REORDERED]
    assert sent("a.0").send("b.0").acknowledged("a.0", 1).end("b.0", "a.0").kinds == []


@pytest.mark.parametrize("log", [(), ("b.0",)])
def test_a_record_that_was_read_and_is_not_in_the_log_was_uncommitted(log: tuple[str, ...]) -> None:
    story = sent("a.0", "b.0").failed("a.0").read(0, "a.0").end(*log)
    assert set(story.kinds) == {checker.GONE}


def test_two_reads_that_differ_need_no_end_to_be_seen() -> None:
    story = sent("a.0", "b.0").read(0, "a.0").read(0, "b.0", client="other")
    assert story.kinds == [checker.GONE]
    assert story.verdict.unread == (P,)


def test_a_scan_that_skips_an_offset_has_a_gap() -> None:
    story = sent("a.0", "a.1", "a.2").read(0, "a.0").read(2, "a.2")
    story.end("a.0", "a.1", "a.2")
    assert story.kinds == [checker.GAP]
    again = sent("a.0").read(0, "a.0").read(0, "a.0", scan=1).end("a.0")
    assert again.kinds == []


def test_a_record_that_nobody_sent_is_unsent() -> None:
    assert Story().end("garbage").kinds == [checker.UNSENT]


def test_a_log_that_begins_later_has_no_gap() -> None:
    assert sent("a.0").acknowledged("a.0", 7).end("a.0", start=7).kinds == []


def test_without_a_whole_read_losses_are_unknown() -> None:
    verdict = sent("a.0").acknowledged("a.0", 0).verdict
    assert (verdict.findings, verdict.unread) == ((), (P,))


# -- any history that a log explains -------------------------------------------------------------


@st.composite
def stories(draw: st.DrawFn) -> tuple[Story, list[str], set[str]]:
    """The actions of several producers on one log, with the log and the acknowledgements."""
    story, log, acknowledged = Story(), list[str](), set[str]()
    numbers = {"a": 0, "b": 0}
    scan = 0
    for _ in range(draw(st.integers(2, 30))):
        match draw(st.sampled_from(("send", "send", "give up", "read"))):
            case "read":
                at = draw(st.integers(0, len(log)))
                scan += 1
                for offset, record in enumerate(log[at:], at):
                    story.read(offset, record, scan=scan)
            case how:
                client = draw(st.sampled_from(sorted(numbers)))
                record = f"{client}.{numbers[client]}"
                numbers[client] += 1
                story.send(record)
                if how == "send" or draw(st.booleans()):
                    log.append(record)
                if how == "send":
                    story.acknowledged(record, len(log) - 1)
                    acknowledged.add(record)
                else:
                    story.failed(record)
    return story, log, acknowledged


@given(stories())
def test_what_one_log_explains_holds(drawn: tuple[Story, list[str], set[str]]) -> None:
    story, log, acknowledged = drawn
    verdict = story.end(*log).verdict
    assert (verdict.findings, verdict.unread) == ((), (P,) if not story.lines else ())
    assert verdict.acknowledged == len(acknowledged)


@given(stories(), st.data())
def test_whichever_acknowledged_record_is_taken_away_is_lost(
    drawn: tuple[Story, list[str], set[str]], data: st.DataObject
) -> None:
    story, log, acknowledged = drawn
    if not acknowledged:
        return
    gone = data.draw(st.sampled_from(sorted(acknowledged)))
    verdict = story.end(*(one for one in log if one != gone)).verdict
    assert gone in {one.record for one in verdict.findings if one.kind == checker.LOST}


@given(stories(), st.data())
def test_whichever_record_is_written_twice_is_duplicated(
    drawn: tuple[Story, list[str], set[str]], data: st.DataObject
) -> None:
    story, log, _ = drawn
    if not log:
        return
    again = data.draw(st.sampled_from(log))
    findings = story.end(*log, again).verdict.findings
    assert again in {one.record for one in findings if one.kind == checker.DUPLICATED}


@given(stories(), st.data())
def test_whatever_was_read_and_is_another_record_later_is_seen(
    drawn: tuple[Story, list[str], set[str]], data: st.DataObject
) -> None:
    story, log, _ = drawn
    read = [line for line in story.lines if line.op == "read"]
    if not read:
        return
    offset = data.draw(st.sampled_from(read)).offset
    story.send("c.0")
    changed = [*log[:offset], "c.0", *log[offset + 1 :]]
    assert checker.GONE in story.end(*changed).kinds


# -- the file ------------------------------------------------------------------------------------


def lines(*numbers: int, client: str) -> Iterator[bytes]:
    for at_us in numbers:
        yield msgspec.json.encode(Operation(at_us, client, "send", P, f"{client}.{at_us}")) + b"\n"


def test_files_of_clients_become_one_in_the_order_of_time_and_a_torn_line_is_left_out(
    tmp_path: Path,
) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    a.write_bytes(b"".join(lines(1, 4, client="a")))
    b.write_bytes(b"".join(lines(2, 3, client="b")) + b'{"at_us": 5, "cli')
    merged_history([a, b], tmp_path / "all")
    assert [one.record for one in read_history(tmp_path / "all")] == ["a.1", "b.2", "b.3", "a.4"]
