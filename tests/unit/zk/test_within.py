"""The part of a shared log that concerns one chroot."""

from __future__ import annotations

from zk.ops import Transaction
from zk.real.txnlog import Entry, within


def entries(*transactions: Transaction) -> list[Entry]:
    return [Entry(0, 0, one) for one in transactions]


def test_it_begins_with_the_chroots_making_and_paths_are_those_of_its_clients() -> None:
    log = entries(
        Transaction(1, 7, "createSession"),
        Transaction(2, 7, "create", "/brokers"),
        Transaction(3, 8, "createSession"),
        Transaction(4, 8, "create", "/run-1"),
        Transaction(5, 9, "createSession"),
        Transaction(6, 9, "create", "/run-1/brokers", b"x"),
        Transaction(7, 7, "setData", "/brokers", b"other"),
        Transaction(8, 7, "create", "/run-10/brokers"),
        Transaction(
            9,
            9,
            "multi",
            ops=(
                Transaction(9, 9, "check", "/run-1/epoch"),
                Transaction(9, 9, "setData", "/run-1/state"),
            ),
        ),
        Transaction(10, 9, "error", code=-103),
        Transaction(11, 9, "closeSession", removed=("/run-1/brokers/ids/1",)),
    )
    found = [entry.transaction for entry in within(log, "/run-1")]
    assert [one.zxid for one in found] == [5, 6, 9, 10, 11]
    assert (found[1].path, found[1].data) == ("/brokers", b"x")
    assert [op.path for op in found[2].ops] == ["/epoch", "/state"]
    assert found[4].removed == ("/brokers/ids/1",)
