"""A process of its own with one session, for tests that stop it with SIGSTOP.

`python -m tests.live.zk.lonely_process ADDRESS TIMEOUT_MS` says a line for each thing that its
session tells it, and ends when its input does.
"""

from __future__ import annotations

import sys
import threading

from tests.live.zk.owner import QUICK, Owner, connect
from zk.ops import Create, CreateMode, GetData, SessionState, WatchedEvent
from zk.real.kazoo_service import KazooService
from zk.real.server import parse_address


class Speaker(Owner):
    """Prints all session states and events at once."""

    def on_watch(self, event: WatchedEvent) -> None:
        super().on_watch(event)
        print(f"{event.type.name} {event.path}", flush=True)

    def on_state(self, state: SessionState) -> None:
        super().on_state(state)
        print(state.name, flush=True)


def main() -> None:
    owner, over = Speaker(), threading.Event()
    service = KazooService(parse_address(sys.argv[1]), QUICK)
    session = connect(service, owner, timeout_ms=int(sys.argv[2]))
    owner.ask(session, Create("/mine", b"", CreateMode.EPHEMERAL), GetData("/a", watch=True))
    print("ready", flush=True)
    threading.Thread(target=_await_end, args=(owner, over), daemon=True).start()
    owner.until(over.is_set, patience_s=60)
    service.close()


def _await_end(owner: Owner, over: threading.Event) -> None:
    sys.stdin.read()
    over.set()
    owner.post(lambda: None)


if __name__ == "__main__":
    main()
