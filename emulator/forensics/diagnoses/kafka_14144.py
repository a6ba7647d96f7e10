"""A proposal that was written but answered as outdated (KAFKA-14144)."""

from __future__ import annotations

from emulator.forensics.diagnoses.pending import PendingProposal


class OutdatedAfterItsOwnWrite(PendingProposal):
    """The response to the first request is lost. The repeated request expects a version that is
    gone, so the controller answers INVALID_UPDATE_VERSION, which the leader treats as final."""

    error = "INVALID_UPDATE_VERSION"
    cure = (
        "move the leadership, or elect another controller (delete /controller): a LeaderAndIsr ends"
        " what is pending; fixed in 3.3.0, where a proposal that is already so is answered NONE"
    )
