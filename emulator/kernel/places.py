"""Where a world may hold something: the words for a place.

Plain values, below the scheduler: `holds` acts on them.
"""

from __future__ import annotations

from typing import Literal

import msgspec

At = Literal["request", "answer", "zookeeper", "zookeeper_reply", "watch", "checkpoint"]
"""`request`, `answer`: a message between brokers on its way. `zookeeper`: a thread that is about to
ask ZooKeeper; `zookeeper_reply`: one that has its answer and has not gone on. `watch`: the event
thread, at an event. `checkpoint`: a thread at a place that the core names."""


class Place(msgspec.Struct, frozen=True):
    """Where: at which kind of place of which process, and what is to stand there; an empty word is
    any. `which` is how the thing's own name begins: a path, a controller's event, a request.
    `broker` is what the trace calls the process."""

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
        """Whether what comes here is what this is about."""
        return (
            self.of in ("", of)
            and self.peer in ("", peer)
            and self.thread in ("", thread)
            and any(name.startswith(self.which) for name in which)
        )
