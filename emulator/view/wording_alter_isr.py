"""The words for what happens on the way of an ISR through the controller (AlterIsr).

A part of `wording`, which every reader asks and which takes the table of tellers from here, with
these in it. Knows the vocabulary, not how it is drawn.
"""

from __future__ import annotations

from emulator.trace import events as e
from emulator.view.telling import (
    CONTROLLER,
    TELLERS,
    Level,
    Scene,
    Told,
    ids,
    lane_of,
    tells,
)

__all__ = ["TELLERS"]


@tells(e.AlterIsrProposed)
def _proposed(event: e.AlterIsrProposed, on: Scene) -> Told:
    text = f"{on.name(event.partition)}proposes {ids(event.isr)} in place of v{event.zk_version}"
    return Told(event, lane_of(event), text, event.pending, Level.DETAIL, "notice")


@tells(e.AlterIsrSent)
def _sent(event: e.AlterIsrSent, on: Scene) -> Told:
    again = f", attempt {event.attempt}" if event.attempt > 1 else ""
    of = "" if on.only else f" for {on.names(event.partitions)}"
    text = f"asks controller {event.controller}{of}{again}"
    many = f"{len(event.partitions)} partitions" if len(event.partitions) > 1 else ""
    tone = "refused" if again else "notice"
    return Told(event, lane_of(event), text, many, Level.STORY, tone)


@tells(e.AlterIsrDecided)
def _decided(event: e.AlterIsrDecided, on: Scene) -> Told:
    name, source = on.name(event.partition), str(event.sender)
    if event.error == "NONE":
        text = f"{name}{ids(event.isr)} at v{event.zk_version} for {event.sender}"
        return Told(event, CONTROLLER, text, "", Level.DETAIL, "write", source)
    text = f"{name}refuses {ids(event.proposed)} of {event.sender}"
    return Told(event, CONTROLLER, text, event.error, Level.STORY, "refused", source)


@tells(e.AlterIsrRefused)
def _refused(event: e.AlterIsrRefused, on: Scene) -> Told:
    of = "" if on.only else f" for {on.names(event.partitions)}"
    text = f"broker {event.broker} refuses AlterIsr of {event.sender}{of}"
    return Told(event, CONTROLLER, text, event.error, Level.STORY, "refused", str(event.sender))


@tells(e.AlterIsrFailed)
def _failed(event: e.AlterIsrFailed, on: Scene) -> Told:
    said = event.error if event.error != "NONE" else "an answer that is too old"
    text = f"{on.name(event.partition)}{event.change} not done: {said}"
    return Told(event, lane_of(event), text, event.outcome, tone="refused")
