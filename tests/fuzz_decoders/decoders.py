"""Every decoder of what comes from outside: its valid inputs, how they are changed, and the errors
that are its own.

A decoder reads an input to its end; what is checked behind a checksum gets a new checksum after the
change, so that the change is read.
"""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import crc32c
import msgspec
from hypothesis import strategies as st

from emulator.analysis.dataset import RunKey, open_dataset, pieces
from emulator.analysis.errors import BadDataset
from emulator.analysis.sweep.grid import Grid
from emulator.analysis.sweep.spark import MANIFEST, Manifest, prepare
from emulator.analysis.writer import write_run
from emulator.conformance.recording import BadRecording, read_recording
from emulator.forensics.imported import Imported, import_folders, read_import
from emulator.kafka.coordinator.group_records import (
    StoredGroup,
    StoredMember,
    UnknownRecord,
    group_key,
    group_value,
    offset_key,
    offset_value,
    read_group,
    read_key,
    read_offset,
)
from emulator.kafka.model.record_batch import (
    CHECKED_FROM,
    HEADER,
    UnreadableBatch,
    batch_of,
    records_of,
)
from emulator.kafka.profiles.base import profiles
from emulator.kafka.protocol.groups import CommittedOffset
from emulator.runs.replay import about_run
from emulator.scenario.errors import UserError
from emulator.scenario.load import loads
from emulator.scenario.shipped import shipped
from emulator.search.fuzz.campaign import TRIALS, Campaign
from emulator.search.fuzz.trial import Trial
from emulator.search.fuzz.worlds import draw_world
from emulator.search.guided.choices import BadChoices, read_choices
from emulator.search.schedules.schedule import read_schedule
from emulator.trace.reader import SCHEMA_VERSION, BadTrace, Header, read_events
from emulator.trace.values import TopicPartition
from emulator.worlds.network.cause_links import CausalityLog, read_notes
from emulator.worlds.storage.files import OperatingSystemFiles
from emulator.worlds.storage.log_recovery import offset_behind, recover
from emulator.worlds.storage.stored_logs import StoredDirectory, claim
from emulator.worlds.wire.api import supported_versions
from emulator.worlds.wire.errors import Malformed
from emulator.worlds.wire.frames import (
    UnknownApiVersionsVersion,
    arrived,
    request_frame,
    response_from,
)
from emulator.worlds.wire.records import produced
from tests.fuzz_decoders.mutations import (
    Mutation,
    other_bytes,
    other_json,
    other_lines,
    other_yaml,
)
from tests.unit.analysis.random_events import EVENTS
from tests.unit.analysis.test_writer import BEGAN, ENDED, story
from tests.unit.forensics.strangers import LOGS
from tests.unit.worlds.test_decoder import REQUESTS, encoded, entities
from tests.unit.worlds.test_wire import EXCHANGES, FRAMES
from tests.unit.zk import written_log
from tests.unit.zk.test_jute import requests as zookeeper_requests
from zk.client import codec, codec_admin
from zk.errors import MalformedZNode
from zk.ops import Create, Exists, GetChildren, GetData, Multi
from zk.real import jute, txnlog

RECORDINGS = Path(__file__).parents[1] / "recordings"


class Decoder(msgspec.Struct, frozen=True):
    """`decode` raises nothing but `errors`. `seconds` of CPU and `megabytes` are the most that
    one input may take, while its memory is traced, which makes it several times as slow."""

    name: str
    inputs: Callable[[], st.SearchStrategy[bytes]]
    mutation: Mutation
    decode: Callable[[bytes], object]
    errors: tuple[type[Exception], ...] = ()
    repair: Callable[[bytes], bytes] = lambda data: data
    seconds: float = 5.0
    megabytes: float = 64.0

    def hostile(self) -> st.SearchStrategy[bytes]:
        return self.inputs().flatmap(self.mutation).map(self.repair)


def _one_of(inputs: Callable[[], Sequence[bytes]]) -> Callable[[], st.SearchStrategy[bytes]]:
    return lambda: st.sampled_from(inputs())


def _in_file(name: str, decode: Callable[[Path], object]) -> Callable[[bytes], object]:
    """Decode a file of that name in a folder of its own; `decode` is given the folder."""

    def run(data: bytes) -> object:
        with TemporaryDirectory(prefix="decoder-") as folder:
            file = Path(folder) / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
            return decode(Path(folder))

    return run


# -- Kafka's protocol ------------------------------------------------------------------------------

_KNOWS = supported_versions(profiles()["2.7"])


def _any_request() -> st.SearchStrategy[bytes]:
    """A recorded request, or any entity of any API and version."""

    def framed(schema: type) -> st.SearchStrategy[bytes]:
        key, version = schema.__api_key__, schema.__version__  # type: ignore[attr-defined]
        header = schema.__header_schema__  # type: ignore[attr-defined]
        start = struct.pack(">hhi", key, version, 1) + b"\0\1c" + b"\0" * header.__flexible__
        return entities(schema).map(lambda entity: start + encoded(entity))

    return st.one_of(
        st.sampled_from([data for data, _ in FRAMES]),
        st.sampled_from(REQUESTS).flatmap(framed),
    )


def _read_and_answer(data: bytes) -> object:
    return arrived(data, _KNOWS)


@cache
def _responses() -> list[tuple[bytes, object, int]]:
    """Each exchange in each version: the response's bytes, and what it answers."""
    return [
        (answer[4:], request, version)
        for request, response in EXCHANGES
        for version in range(*_range(request))
        if (answer := _answer(request, response, version)) is not None
    ]


def _range(request: object) -> tuple[int, int]:
    from emulator.worlds.wire.frames import api_of

    least, most = _KNOWS.get(api_of(request).name, (1, 0))  # type: ignore[arg-type]
    return least, most + 1


def _answer(request: object, response: object, version: int) -> bytes | None:
    frame = request_frame(request, version, 1, "c")  # type: ignore[arg-type]
    return arrived(frame[4:], _KNOWS).answer([response])  # type: ignore[list-item]


def _numbered_responses() -> list[bytes]:
    """The first two bytes say which exchange it is."""
    return [n.to_bytes(2, "big") + data for n, (data, _, _) in enumerate(_responses())]


def _read_response(data: bytes) -> object:
    number = int.from_bytes(data[:2], "big")
    if number >= len(_responses()):
        raise Malformed("no exchange")
    _, request, version = _responses()[number]
    return response_from(data[2:], request, version)  # type: ignore[arg-type]


def _batches() -> list[bytes]:
    plain = batch_of([(b"key", b"value"), (None, bytes(50)), (b"", None)], 1_700_000_000_000)
    body = gzip.compress(plain[HEADER.size :], mtime=0)
    fields = list(HEADER.unpack_from(plain))
    fields[1], fields[5] = len(body) + HEADER.size - 12, 1
    return [plain, plain[:8] + HEADER.pack(*fields)[8:] + body, batch_of([(b"k", b"v")], 0) * 2]


def _checked_batch(data: bytes) -> bytes:
    """With the length and the checksum that its bytes have."""
    if len(data) < HEADER.size:
        return data
    length, crc = len(data) - 12, crc32c.crc32c(data[CHECKED_FROM:])
    return data[:8] + struct.pack(">i", length) + data[12:17] + struct.pack(">I", crc) + data[21:]


def _read_records(data: bytes) -> object:
    batch = produced(data)
    return list(records_of(batch.data, batch.base_offset))


def _recover_log(data: bytes) -> object:
    recovered = recover(data, 0, None, {})
    return recovered, offset_behind(data, recovered.size, 0)


_GROUP = StoredGroup(
    "consumer", 3, "range", "m", (StoredMember("m", "i", "c", "/h", 9, 9, b"s", b"a"),), 7
)


def _group_records() -> list[bytes]:
    """The first byte says what it is."""
    return [
        b"\0" + offset_key("g", TopicPartition("t", 0)),
        b"\0" + group_key("g"),
        *(b"\1" + offset_value(CommittedOffset(5, 1, "m", 0), v) for v in (1, 2, 3)),
        *(b"\2" + group_value(_GROUP, v) for v in range(4)),
    ]


def _read_group_record(data: bytes) -> object:
    return (read_key, read_offset, read_group)[data[0] % 3 if data else 0](data[1:])


# -- ZooKeeper -------------------------------------------------------------------------------------


def _jute_messages() -> st.SearchStrategy[bytes]:
    return zookeeper_requests.map(lambda request: jute.encode_request(1, request))


def _read_jute(data: bytes) -> object:
    for decode in (
        jute.decode_request,
        jute.decode_connect,
        jute.decode_connected,
        jute.decode_reply_header,
        jute.decode_watch_event,
    ):
        try:
            decode(data)
        except jute.Malformed:
            pass
    for request in (Create("/a", b""), GetData("/a"), GetChildren("/a"), Multi(()), Exists("/")):
        try:
            jute.decode_reply(request, data)
        except jute.Malformed:
            pass
    return list(jute.take_frames(bytearray(data)))


def _transactions() -> list[bytes]:
    """Each the head and body of one record."""
    w = written_log
    made = [
        w.create("/a", b"x"),
        w.set_data("/a", b"{}", 1),
        w.delete("/a"),
        w.multi(w.check("/a", 1), w.create("/b", None), w.delete("/a")),
        w.create_session(6000),
        w.close_session("/a", "/b"),
        w.error(-110),
    ]
    return [w.record(1, n, one)[12:-1] for n, one in enumerate(made, 1)]


def _in_log(data: bytes) -> bytes:
    checked = struct.pack("!qi", zlib.adler32(data), len(data)) + data + b"B"
    return written_log.log([checked])


_ZNODES: list[tuple[Callable[[bytes], object], bytes]] = [
    (
        lambda data: codec.decode_state("/s", data, 0),
        b'{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0,"isr":[1,2]}',
    ),
    (codec.decode_controller, b'{"version":1,"brokerid":1,"timestamp":"1600000000000"}'),
    (codec.decode_controller_epoch, b"1"),
    (
        lambda data: codec.decode_isr_change("/n", data),
        b'{"version":1,"partitions":[{"topic":"t","partition":0}]}',
    ),
    (
        codec.decode_preferred_election,
        b'{"version":1,"partitions":[{"topic":"t","partition":0}]}',
    ),
    (
        lambda data: codec.decode_topic("/t", data),
        b'{"version":2,"partitions":{"0":[1,2]},"adding_replicas":{"0":[2]},"removing_replicas":{}}',
    ),
    (
        lambda data: codec_admin.decode_broker("/b", data),
        b'{"endpoints":["P://h:9092"],"host":"h","jmx_port":-1,"timestamp":"1","port":9,"version":4}',
    ),
    (
        lambda data: codec_admin.decode_log_dir_event("/l", data),
        b'{"version":1,"broker":1,"event":1}',
    ),
    (
        codec_admin.decode_reassignment,
        b'{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1,2]}]}',
    ),
    (
        lambda data: codec_admin.decode_config("/c", data),
        b'{"version":1,"config":{"min.insync.replicas":"2"}}',
    ),
    (
        lambda data: codec_admin.decode_config_change("/c", data),
        b'{"version":2,"entity_path":"topics/t"}',
    ),
    (codec_admin.decode_cluster_id, b'{"version":"1","id":"abc"}'),
    (
        codec_admin.decode_producer_id_block,
        b'{"version":1,"broker":1,"block_start":"0","block_end":"999"}',
    ),
]


def _read_znode(data: bytes) -> object:
    for decode, _ in _ZNODES:
        try:
            decode(data)
        except MalformedZNode:
            pass
    return None


# -- files of runs ---------------------------------------------------------------------------------


def _traces() -> st.SearchStrategy[bytes]:
    """Traces of the current and the first format."""

    def written(version: int, events: Sequence[object]) -> bytes:
        header = Header(version, "s", 1, "2.6", "simulated")
        return b"".join(msgspec.json.encode(line) + b"\n" for line in (header, *events))

    return st.builds(written, st.sampled_from([1, SCHEMA_VERSION]), EVENTS)


def _runs() -> list[bytes]:
    about = {
        "scenario": "s",
        "seed": 1,
        "zookeeper": "simulated",
        "profile": "2.6",
        "guards": {},
        "set": ["a=1"],
        "versions": {"isr": "1"},
    }
    return [msgspec.json.encode(about)]


def _imports() -> list[bytes]:
    of = msgspec.json.schema(Imported)  # the fields, so that a new one is not forgotten
    fields = of["$defs"]["Imported"]["required"]
    empty = {"folder": "f", "began_ms": 0, "brokers": {}, "transactions": 0, "unread": {}}
    empty |= {"unknown": [], "clocks": {"reference": "zookeeper", "ahead": []}}
    return [msgspec.json.encode({name: empty[name] for name in fields})]


def _trials() -> list[bytes]:
    trials = [Trial(seed, (), 10, 20, 30) for seed in range(3)]
    return [b"".join(msgspec.json.encode(one) + b"\n" for one in ({"first_seed": 0}, *trials))]


def _open_campaign(folder: Path) -> object:
    with Campaign(folder, 0) as campaign:
        return campaign.next_seed


_GRID = Grid("none", "none.yaml", "", (), 0, 0)


def _resume(folder: Path) -> object:
    return prepare(_GRID, folder, resume=True)


def _notes() -> list[bytes]:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "notes"
        notes = CausalityLog(path, lambda: 0)
        number = notes.note("sent", "broker-1", cause=3)
        notes.note("received", "broker-2", number)
        notes.close()
        return [path.read_bytes()]


def _recorded(name: str) -> Callable[[], list[bytes]]:
    def read() -> list[bytes]:
        files = sorted((RECORDINGS / "kafka-2.6.3").glob(f"*/{name}.gz"))[:3]
        texts = [gzip.decompress(file.read_bytes()).splitlines(keepends=True) for file in files]
        return [b"".join(text[:1] + text[1::40][:40]) for text in texts]

    return read


def _recorded_result(folder: Path) -> object:
    (folder / "recording.jsonl").write_bytes(b'{"kind": "settings", "kafka": "2.6.3"}\n')
    return read_recording(folder)


def _choices() -> list[bytes]:
    (file,) = (RECORDINGS / "guided" / "kafka-2.7.2").glob("controller-shutdown/choices.json")
    document = msgspec.json.decode(file.read_bytes())
    document["stimuli"] = document["stimuli"][:3]
    document["draws"] = {}
    document["runs"] = document["runs"][:1]
    return [msgspec.json.encode(document)]


# -- YAML ------------------------------------------------------------------------------------------


@cache
def _scenarios() -> list[bytes]:
    texts = [path.read_bytes() for _, path in sorted(shipped().items())]
    return [*texts, *(draw_world(seed).encode() for seed in range(20))]


def _load_scenario(data: bytes) -> object:
    return loads(data.decode("utf-8", "replace"), "hostile")


_SCHEDULE = b"""schedule: 1
kind: schedule
scenario: {run: 10s, cluster: {brokers: [1, 2, 3]}}
seed: 1
faults:
  - {at: 1, what: crash 1}
choices:
  - {at: 5, what: timeout, over: "b1"}
"""


# -- logs ------------------------------------------------------------------------------------------


@cache
def _log_lines() -> list[bytes]:
    """Some lines of each kind of file, of several versions."""
    files = sorted(LOGS.rglob("broker-1/*.log.gz"))
    texts = [gzip.decompress(file.read_bytes()).splitlines(keepends=True) for file in files]
    return [b"".join(lines[:: max(1, len(lines) // 40)]) for lines in texts]


def _import_logs(folder: Path) -> object:
    """Import as each kind of file, beside a valid line."""
    text = (folder / "server.log").read_bytes()
    for name in ("controller.log", "state-change.log"):
        (folder / name).write_bytes(text)
    return import_folders([folder], folder / "runs")


# -- data ------------------------------------------------------------------------------------------


@cache
def _data_set() -> tuple[tuple[str, bytes], ...]:
    with TemporaryDirectory(prefix="decoder-") as name:
        base = Path(name)
        write_run(base, RunKey("s", "2.6", "zookeeper", "a"), BEGAN, story(), ENDED)
        files = sorted([*pieces(base / "events"), *pieces(base / "runs")])
        return tuple((str(file.relative_to(base)), file.read_bytes()) for file in files)


def _pieces() -> list[bytes]:
    """The first byte says which file of the data set it is."""
    return [bytes([n]) + data for n, (_, data) in enumerate(_data_set())]


def _open_data_set(data: bytes) -> object:
    with TemporaryDirectory(prefix="decoder-") as name:
        base, number = Path(name), data[0] if data else 0
        for n, (file, whole) in enumerate(_data_set()):
            (base / file).parent.mkdir(parents=True, exist_ok=True)
            (base / file).write_bytes(data[1:] if n == number else whole)
        return open_dataset(base, thorough=True)


def _open_directory(folder: Path) -> object:
    """Open as a segment, an epoch file, the file of gaps, a checkpoint and meta.properties."""
    data = (folder / "data").read_bytes()
    for place in ("orders-0", "orders-1"):
        (folder / place).mkdir()
    (folder / "orders-0" / f"{0:020d}.log").write_bytes(data)
    (folder / "orders-1" / "leader-epoch-checkpoint").write_bytes(data)
    (folder / "replication-offset-checkpoint").write_bytes(data)
    StoredDirectory(OperatingSystemFiles(), 0, folder).close()
    (folder / "meta.properties").write_bytes(data)
    with claim(OperatingSystemFiles(), folder, 1):
        return None


_CHECKPOINTS = [b"0\n1\norders 0 5\n", b"0\n2\n0 0\n1 7\n", b"version=0\nbroker.id=1\n"]


DECODERS = [
    Decoder(
        "Kafka requests",
        _any_request,
        other_bytes,
        _read_and_answer,
        (Malformed, UnknownApiVersionsVersion),
    ),
    Decoder(
        "Kafka responses", _one_of(_numbered_responses), other_bytes, _read_response, (Malformed,)
    ),
    Decoder(
        "record batches",
        _one_of(_batches),
        other_bytes,
        _read_records,
        (Malformed, UnreadableBatch),
        _checked_batch,
    ),
    Decoder("segments of a log", _one_of(_batches), other_bytes, _recover_log),
    Decoder(
        "records of groups",
        _one_of(_group_records),
        other_bytes,
        _read_group_record,
        (UnknownRecord,),
    ),
    Decoder("ZooKeeper messages", _jute_messages, other_bytes, _read_jute, (jute.Malformed,)),
    Decoder(
        "ZooKeeper transaction logs",
        _one_of(_transactions),
        other_bytes,
        _in_file("log.1", lambda folder: list(txnlog.read_log(folder))),
        (jute.Malformed,),
        _in_log,
    ),
    Decoder("znodes", _one_of(lambda: [data for _, data in _ZNODES]), other_json, _read_znode),
    Decoder(
        "traces",
        _traces,
        other_json,
        _in_file("trace.ndjson", lambda folder: list(read_events(folder / "trace.ndjson"))),
        (BadTrace,),
    ),
    Decoder("run.json", _one_of(_runs), other_json, _in_file("run.json", about_run), (UserError,)),
    Decoder(
        "import.json",
        _one_of(_imports),
        other_json,
        _in_file("import.json", read_import),
        (UserError,),
    ),
    Decoder(
        "trials of isr fuzz",
        _one_of(_trials),
        other_json,
        _in_file(TRIALS, _open_campaign),
        (UserError,),
    ),
    Decoder(
        "manifests of sweeps",
        lambda: st.just(msgspec.json.encode(Manifest(_GRID.digest(), _GRID))),
        other_json,
        _in_file(MANIFEST, _resume),
        (UserError,),
    ),
    Decoder(
        "notes of causes",
        _one_of(_notes),
        other_json,
        _in_file("notes", lambda folder: list(read_notes(folder / "notes"))),
        (BadTrace,),
    ),
    Decoder(
        "recordings",
        _one_of(_recorded("recording.jsonl")),
        other_json,
        _in_file("recording.jsonl", lambda folder: read_recording(folder).transactions),
        (BadRecording,),
    ),
    Decoder(
        "results of producers",
        _one_of(_recorded("produce.jsonl")),
        other_json,
        _in_file("produce.jsonl", _recorded_result),
        (BadRecording,),
    ),
    Decoder(
        "choices of a guided search",
        _one_of(_choices),
        other_json,
        _in_file("choices.json", lambda folder: read_choices(folder / "choices.json")),
        (BadChoices,),
    ),
    Decoder(
        "scenarios", _one_of(_scenarios), other_yaml, _load_scenario, (UserError,), seconds=20.0
    ),
    Decoder(
        "schedules",
        lambda: st.just(_SCHEDULE),
        other_yaml,
        _in_file("schedule.yaml", lambda folder: read_schedule(folder / "schedule.yaml")),
        (UserError,),
        seconds=20.0,
    ),
    Decoder(
        "log lines",
        _one_of(_log_lines),
        other_lines,
        _in_file("server.log", _import_logs),
        (UserError,),
        seconds=20.0,
    ),
    Decoder("data sets", _one_of(_pieces), other_bytes, _open_data_set, (BadDataset,)),
    Decoder(
        "data directories",
        lambda: st.sampled_from([*_batches(), *_CHECKPOINTS]),
        other_lines,
        _in_file("data", _open_directory),
        (UserError,),
    ),
]
