"""A reply of setData, delete or check carries no path: only what was created has one."""

from tests.conformance.zookeeper_stages import Asks
from zk.ops import Check, Create, Delete, Multi, SetData

STORY = (
    Asks("a", (Create("/a", b""), SetData("/a", b"1"))),
    Asks("b", (Multi((Check("/a", 1), SetData("/a", b"2"), Delete("/a"))), Delete("/b"))),
    Asks("a", (Create("/a", None), Delete("/a"))),
)
