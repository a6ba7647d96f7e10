"""The entries of each point in a recording, and the timing that is left out."""

from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from emulator.conformance.criteria import entries_of, lens_of, without_retries
from emulator.conformance.recording import Fact, Recording
from emulator.conformance.requests import batches_sorted

LANE = st.lists(st.tuples(st.integers(0, 9), st.sampled_from("ABC")), max_size=14)
properties = hypothesis_settings(derandomize=True, deadline=None)


def recording(*facts: Fact, kafka: str = "2.6.3") -> Recording:
    return Recording({"kind": "settings", "kafka": kafka}, list(facts))


def request(op: str, path: str = "", broker: int = 1, **fields: object) -> Fact:
    return {"t": 1, "kind": "zookeeper_request", "broker": broker, "op": op, "path": path, **fields}


def lanes_of_requests(*facts: Fact) -> list[str]:
    told = recording(*facts)
    return sorted(entries_of(6, told, lens_of(told)))


def squeezed_text(text: str) -> str:
    return "".join(str(entry) for _, entry in without_retries([(0, letter) for letter in text]))


def test_repeats_of_one_entry_and_of_a_pair_count_once() -> None:
    assert squeezed_text("AABBB") == "AB"
    assert squeezed_text("ABABAB") == "AB"
    assert squeezed_text("ABABA") == "ABA"
    assert squeezed_text("ABCABC") == "ABCABC"


def test_of_a_repeat_the_first_time_is_kept() -> None:
    assert without_retries([(1, "A"), (5, "A"), (9, "B")]) == [(1, "A"), (9, "B")]


@given(LANE, st.integers(0, 13))
@properties
def test_repeating_any_entry_changes_nothing(lane: list[tuple[int, str]], at: int) -> None:
    repeated = lane[:at] + lane[max(0, at - 1) : at] + lane[at:]
    assert without_retries(list(repeated)) == without_retries(list(lane))


@given(LANE)
@properties
def test_what_is_squeezed_has_nothing_left_to_squeeze(lane: list[tuple[int, str]]) -> None:
    once = without_retries(list(lane))
    assert without_retries(once) == once


def test_requests_of_one_kind_in_a_row_have_no_order() -> None:
    def read(*brokers: int) -> Recording:
        reads = (request("getData", f"/brokers/ids/{b}", watch=False) for b in brokers)
        return recording(*reads)

    lens = lens_of(read(1))
    assert entries_of(6, read(3, 1, 2), lens) == entries_of(6, read(1, 2, 3), lens)


def test_requests_of_two_kinds_keep_their_order() -> None:
    plain = request("getData", "/controller", watch=False)
    watched = request("getData", "/controller", watch=True)
    lens = lens_of(recording(plain))
    one, other = recording(plain, watched), recording(watched, plain)
    assert entries_of(6, one, lens) != entries_of(6, other, lens)
    assert batches_sorted([]) == []


def test_a_request_gives_away_the_thread_that_sent_it() -> None:
    state = "/brokers/topics/o/partitions/0/state"
    assert lanes_of_requests(request("setData", state, version=3)) == ["broker 1 leader of o-0"]
    assert lanes_of_requests(request("getData", state)) == ["broker 1 controller"]
    assert lanes_of_requests(request("create", "/isr_change_notification/isr_change_")) == [
        "broker 1 propagation"
    ]
    assert lanes_of_requests(request("create", "/admin/delete_topics/o")) == ["broker 1 admin"]
    assert lanes_of_requests(request("exists", "/brokers/topics/o")) == ["broker 1 admin"]
    assert lanes_of_requests(request("create", "/brokers/ids")) == ["broker 1 start-up"]
    assert lanes_of_requests(request("getChildren2", "/brokers/ids")) == ["broker 1 start-up"]
    assert lanes_of_requests(request("getChildren2", "/brokers/ids", watch=True)) == [
        "broker 1 controller"
    ]


def test_a_leader_reads_its_own_write_back_once() -> None:
    state = "/brokers/topics/o/partitions/0/state"
    write, read = request("setData", state, version=3), request("getData", state)
    assert lanes_of_requests(write, read) == ["broker 1 leader of o-0"]
    assert lanes_of_requests(write, read, read) == ["broker 1 controller", "broker 1 leader of o-0"]


def test_a_broker_reads_ids_at_start_up_until_it_is_registered() -> None:
    read = request("getData", "/brokers/ids/1", watch=False)
    ops = [{"op": "create", "path": "/brokers/ids/1", "flags": "ephemeral"}]
    register = {"t": 1, "kind": "zookeeper_request", "broker": 1, "op": "multi", "ops": ops}
    assert "broker 1 start-up" in lanes_of_requests(read, register)
    assert "broker 1 controller" in lanes_of_requests(register, read)
    again = lanes_of_requests(register, request("connect"), read)
    assert again == ["broker 1 registration", "broker 1 start-up"]


def test_paths_outside_the_comparison_are_left_out() -> None:
    config = request("getData", "/config/topics/o")
    internal = request("getData", "/brokers/topics/__consumer_offsets")
    sync = request("sync", "/controller")
    assert lanes_of_requests(config, internal, sync) == []


def test_what_a_versions_log_does_not_say_is_not_compared() -> None:
    def metadata(**fields: object) -> Recording:
        at = {"t": 1, "broker": 1, "topic": "o", "partition": 0}
        return recording({"kind": "update_metadata", **at, "leader": 1, **fields})

    silent, telling = metadata(), metadata(zk_version=4)
    assert entries_of(4, telling, lens_of(silent)) == entries_of(4, silent, lens_of(silent))
    assert entries_of(4, telling, lens_of(telling)) != entries_of(4, silent, lens_of(telling))


def test_a_kind_that_an_old_log_never_shows_is_not_compared() -> None:
    stop = {"t": 1, "kind": "stop_replica", "broker": 1, "topic": "o", "partition": 0}
    for kafka, lanes in (("1.0.2", 0), ("2.6.3", 1)):
        assert len(entries_of(4, recording(stop), lens_of(recording(kafka=kafka)))) == lanes


def test_requests_are_not_compared_where_none_were_recorded() -> None:
    asked = recording(request("getData", "/controller"))
    assert entries_of(6, asked, lens_of(recording())) == {}


def test_requests_before_up_can_be_left_out() -> None:
    early = recording({**request("getData", "/controller"), "t": -1})
    assert entries_of(6, early, lens_of(early)) != {}
    assert entries_of(6, early, lens_of(early, requests_from_ms=0)) == {}
