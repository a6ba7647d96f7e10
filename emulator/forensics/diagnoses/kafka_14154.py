"""A proposal that an outdated controller refuses (KAFKA-14154)."""

from __future__ import annotations

from emulator.forensics.diagnoses.pending import PendingProposal


class RefusedByOutdatedController(PendingProposal):
    """The controller does not know yet that it was replaced. It finds a leader epoch greater than
    its own and answers FENCED_LEADER_EPOCH, which the leader treats as final."""

    error = "FENCED_LEADER_EPOCH"
    cure = (
        "move the leadership, or elect another controller (delete /controller): a LeaderAndIsr ends"
        " what is pending; fixed in 3.3.0, where such a controller answers NOT_CONTROLLER"
    )
