"""The events of one real broker among emulated ones, from its logs.

Times are the wall clock's; the world that ran the broker converts them to its own clock.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from emulator.forensics.reading import read_folders
from emulator.kafka.profiles.base import profile_of
from emulator.scenario.errors import UserError
from emulator.trace import events as e
from emulator.trace.events import AnyEvent


def read_kafka_host(folder: Path, broker: int) -> list[AnyEvent]:
    """The events in order; none if the broker has logged nothing."""
    try:
        account = read_folders([folder]).accounts.get(broker)
    except UserError:
        return []
    if account is None:
        return []
    profile = profile_of(account.version) if account.version else ""
    # In old versions nothing but the next request ends the lines of an UpdateMetadata: its event
    # comes after those that were logged meanwhile.
    return [
        msgspec.structs.replace(event, profile=profile)
        if isinstance(event, e.BrokerStarting) and not event.profile
        else event
        for event in sorted(account.events, key=lambda event: event.t)
    ]
