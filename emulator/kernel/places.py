"""Places where a world may hold something: plain values below the scheduler. `holds` acts on
them."""

from __future__ import annotations

from typing import Literal

import msgspec

At = Literal["request", "answer", "zookeeper", "zookeeper_reply", "watch", "checkpoint"]
"""`request`, `answer`: a message between brokers in transit. `zookeeper`: a thread that is about to
send a request to ZooKeeper. `zookeeper_reply`: a thread that has received the response and has not
continued. `watch`: the event thread, at an event. `checkpoint`: a thread at a place that the core
names.
"""


class Place(msgspec.Struct, frozen=True):
    """A place: its kind, its process, and what to hold there; an empty string matches anything.
    `which` is a prefix of the item's own name: a path, a controller event, a request. `broker` is
    the process's name in the trace.
    """

    process: str
    broker: int
    at: At
    of: str = ""
    which: str = ""
    peer: str = ""
    thread: str = ""

    @property
    def words(self) -> str:
        """For people: `at zookeeper setData /brokers of broker-1`."""
        what = " ".join(filter(None, (self.at, self.of, self.which, self.peer, self.thread)))
        return f"at {what} of {self.process}"

    def fits(self, of: str, which: tuple[str, ...], peer: str, thread: str) -> bool:
        """Whether this place applies to what arrives."""
        return (
            self.of in ("", of)
            and self.peer in ("", peer)
            and self.thread in ("", thread)
            and any(name.startswith(self.which) for name in which)
        )
