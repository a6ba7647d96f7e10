"""Recordings are read as they are, written as they were, and refused with file and line."""

import gzip
import json
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.conformance.recording import (
    BadRecording,
    ProduceResult,
    Recording,
    read_recording,
    write_recording,
)

RECORDINGS = Path(__file__).parents[2] / "recordings"
ALL = sorted(path.parent for path in RECORDINGS.glob("**/recording.jsonl.gz"))
SETTINGS = {"t": None, "kind": "settings", "kafka": "2.6.3"}


def folder_with(folder: Path, *facts: object, produced: str | None = None) -> Path:
    text = "".join(f"{fact if isinstance(fact, str) else json.dumps(fact)}\n" for fact in facts)
    (folder / "recording.jsonl").write_text(text)
    if produced is not None:
        (folder / "produce.jsonl").write_text(produced)
    return folder


@pytest.mark.parametrize("folder", ALL, ids=lambda folder: folder.name)
def test_a_recording_read_and_written_is_the_same_to_the_byte(folder: Path, tmp_path: Path) -> None:
    write_recording(read_recording(folder), tmp_path)
    was = {path.stem: gzip.decompress(path.read_bytes()) for path in folder.glob("*.jsonl.gz")}
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == was


def test_a_plain_file_goes_before_its_compressed_twin(tmp_path: Path) -> None:
    folder_with(tmp_path, SETTINGS | {"kafka": "2.7.2"})
    (tmp_path / "recording.jsonl.gz").write_bytes(gzip.compress(json.dumps(SETTINGS).encode()))
    assert read_recording(tmp_path).version == (2, 7, 2)


def test_without_a_producer_no_results_are_read_or_written(tmp_path: Path) -> None:
    write_recording(Recording(SETTINGS, []), tmp_path)
    assert not (tmp_path / "produce.jsonl").exists()
    assert read_recording(tmp_path).results == []


def test_a_recording_is_called_as_it_was_asked_for() -> None:
    folder = str(RECORDINGS / "kafka-2.6.3" / "flapping")
    assert read_recording(folder).name == folder


def test_an_unknown_kind_of_fact_is_kept(tmp_path: Path) -> None:
    fact = {"t": 5, "kind": "something_new", "what": [1, {"two": None}]}
    assert read_recording(folder_with(tmp_path, SETTINGS, fact)).events == [fact]


def test_the_parts_of_a_multi_are_transactions_of_the_multis_session(tmp_path: Path) -> None:
    ops = [{"op": "check", "path": "/a", "version": 2}, {"op": "error", "code": -101}]
    multi = {"t": 5, "kind": "zookeeper", "broker": 2, "op": "multi", "ops": ops}
    check, error = read_recording(folder_with(tmp_path, SETTINGS, multi)).transactions
    assert (check.broker, check.op, check.path, check.version) == (2, "check", "/a", 2)
    assert (error.broker, error.op, error.path, error.version) == (2, "error", "", None)


def test_a_result_without_an_offset_has_none(tmp_path: Path) -> None:
    line = {"t": 7, "topic": "o", "acks": "all", "partition": 0, "result": "MSG_TIMED_OUT"}
    folder_with(tmp_path, SETTINGS, produced=json.dumps(line))
    (result,) = read_recording(tmp_path).results
    assert result == ProduceResult(7, "o", "all", 0, "MSG_TIMED_OUT", None)


STATE = "/brokers/topics/o/partitions/0/state"
SHRINK = {"t": 1, "kind": "shrink", "broker": 1, "topic": "o", "partition": 0, "to_isr": [1]}
SET_STATE = {"t": 1, "kind": "zookeeper", "broker": 1, "op": "setData", "path": STATE}
REGISTERS = SET_STATE | {"op": "create", "path": "/brokers/ids/1"}


@pytest.mark.parametrize(
    ("fact", "why"),
    [
        ("{", "truncated"),
        ("", "truncated"),
        ("[1]", "not an object"),
        ({"t": 1}, "not an object with a kind"),
        ({"t": 1.5, "kind": "expand"}, "t is not a whole number"),
        ({"kind": "stimulus", "do": "up"}, "t is not a whole number"),
        (SHRINK, "shrink: from_isr: missing"),
        (SHRINK | {"from_isr": 7}, "shrink: from_isr: missing, or of the wrong type"),
        ({"t": 1, "kind": "stimulus", "do": "produce", "topic": "o"}, "partitions, rate, acks"),
        ({"t": 1, "kind": "zookeeper", "op": "multi", "ops": [{}]}, "an operation lacks op"),
        ({"t": 1, "kind": "zookeeper", "op": "multi", "ops": 3}, "ops is not a list"),
        (SET_STATE | {"data": "{}"}, "lacks version"),
        (SET_STATE | {"version": 1, "data": "{}"}, "missing required field `leader`"),
        (REGISTERS | {"data": '{"port":"x"}'}, "/brokers/ids/1: Expected `int`"),
    ],
)
def test_a_bad_fact_is_refused_with_its_line(tmp_path: Path, fact: object, why: str) -> None:
    folder_with(tmp_path, SETTINGS, {"t": 0, "kind": "stimulus", "do": "up"}, fact)
    with pytest.raises(BadRecording, match=r"recording\.jsonl:3: ") as refused:
        read_recording(tmp_path)
    assert (refused.value.file, refused.value.line) == (tmp_path / "recording.jsonl", 3)
    assert why in refused.value.why


@pytest.mark.parametrize("first", [{"t": 1, "kind": "stimulus", "do": "up"}, {"kind": "settings"}])
def test_the_first_line_must_be_settings_that_name_the_version(
    tmp_path: Path, first: object
) -> None:
    with pytest.raises(BadRecording, match=r"recording\.jsonl:1: "):
        read_recording(folder_with(tmp_path, first))


def test_an_empty_file_is_no_recording(tmp_path: Path) -> None:
    with pytest.raises(BadRecording, match="not the settings"):
        read_recording(folder_with(tmp_path))


def test_a_bad_result_is_refused_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(BadRecording, match=r"produce\.jsonl:1: .*topic"):
        read_recording(folder_with(tmp_path, SETTINGS, produced='{"t": 1}\n'))


def test_a_folder_without_a_recording_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(BadRecording, match="neither recording"):
        read_recording(tmp_path / "nowhere")


@pytest.mark.parametrize("kept", [0, 5, 40])
def test_a_damaged_archive_is_refused_by_name(tmp_path: Path, kept: int) -> None:
    whole = gzip.compress(json.dumps(SETTINGS).encode())
    (tmp_path / "recording.jsonl.gz").write_bytes(whole[:kept] + b"\xff" * (kept > 0))
    with pytest.raises(BadRecording, match=r"recording\.jsonl\.gz"):
        read_recording(tmp_path)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=6,
)
KINDS = ("zookeeper", "zookeeper_request", "shrink", "update_metadata", "stimulus")
FIELDS = ("t", "op", "ops", "path", "data", "version", "broker", "topic", "partition", "do")
FACTS = st.builds(
    lambda kind, t, rest: {"t": t, "kind": kind, **rest},
    st.sampled_from(KINDS),
    st.integers(0, 99) | JSON,
    st.dictionaries(st.sampled_from(FIELDS), st.sampled_from(["create", "setData", STATE]) | JSON),
)


@given(fact=FACTS | JSON)
@settings(derandomize=True, deadline=None)
def test_whatever_a_line_says_it_is_read_or_refused(
    fact: object, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = folder_with(tmp_path_factory.mktemp("any"), SETTINGS, fact)
    with suppress(BadRecording):
        assert len(read_recording(folder).transactions) >= 0


def command(t: int, do: str = "reassign", **fields: object) -> dict[str, object]:
    return {"t": t, "kind": "stimulus", "do": do, **fields}


def written(t: int, path: str, op: str = "create", broker: int | None = 0) -> dict[str, object]:
    data = {"version": 3} if op == "setData" else {}
    return {"t": t, "kind": "zookeeper", "broker": broker, "op": op, "path": path, **data}


COMMAND = "/admin/reassign_partitions"


@pytest.mark.parametrize(
    ("facts", "at_ms"),
    [
        ([command(5), written(348, COMMAND)], [348]),
        ([command(5), written(348, COMMAND, broker=3)], [5]),
        ([command(5), written(348, "/admin/delete_topics/t")], [5]),
        ([command(5), command(300), written(348, COMMAND)], [5, 348]),
        (
            [command(5, "add_partitions", topic="t"), written(9, "/brokers/topics/t", "setData")],
            [9],
        ),
        ([command(5, "delete_controller"), written(7, "/controller", "delete")], [7]),
        ([written(950, "/controller", "delete"), command(1000, "delete_controller")], [950]),
        (
            [
                written(950, "/controller", "delete"),
                command(1000, "delete_controller"),
                written(1300, "/controller", "delete"),
                command(1340, "delete_controller"),
            ],
            [950, 1300],
        ),
        ([written(499, "/controller", "delete"), command(1000, "delete_controller")], [1000]),
        ([written(950, COMMAND), command(1000)], [1000]),
        ([command(5, "pause", broker=1), written(7, COMMAND)], [5]),
    ],
    ids=[
        "tool",
        "broker",
        "another",
        "never",
        "set",
        "deleted",
        "shell",
        "shells",
        "earlier shell",
        "earlier tool",
        "no command",
    ],
)
def test_a_command_of_a_tool_happens_when_its_znode_is_written(
    facts: list[dict[str, object]], at_ms: list[int]
) -> None:
    assert [fact["t"] for fact in Recording(SETTINGS, facts).of("stimulus")] == at_ms


def requested(t: int, op: str, path: str | None = None, broker: int = 2) -> dict[str, object]:
    return {"t": t, "kind": "zookeeper_request", "broker": broker, "op": op, "path": path}


def asked(t: int, broker: int = 2) -> dict[str, object]:
    return requested(t, "exists", COMMAND, broker)


@pytest.mark.parametrize(
    ("before", "at_ms"),
    [
        ([asked(444), requested(2116, "connect"), asked(2121)], 444),
        ([asked(444), requested(2116, "connect"), requested(2121, "setWatches"), asked(2121)], 444),
        ([asked(444), requested(450, "getData", "/controller"), asked(2121)], 2127),
        ([asked(444, broker=3), asked(2121)], 2127),
        ([asked(2121)], 2127),
        ([asked(444), asked(2121), requested(2125, "getChildren2", "/brokers/ids")], 2127),
    ],
    ids=["lost", "with watches", "another event", "another broker", "not lost", "not its request"],
)
def test_a_reassignment_by_request_happens_when_the_controller_first_asked(
    before: list[dict[str, object]], at_ms: int
) -> None:
    stimuli = Recording(SETTINGS, [*before, command(2127)]).of("stimulus")
    assert [fact["t"] for fact in stimuli] == [at_ms]
