"""Guards of idempotent producers: which batches a leader accepts.

Read in `broker/partition`, where a leader appends.
"""

from emulator.kafka.profiles.guards.base import Guard

UNKNOWN_PRODUCERS_ACCEPTED = Guard(
    name="unknown-producers-accepted",
    kafka="KIP-360",
    since="2.5",
    does="A leader whose log has nothing of a producer accepts any sequence number of it. Without"
    " it: UNKNOWN_PRODUCER_ID, unless the number is 0.",
    citation="spec §3.6; ProducerStateManager.scala@2.6.3 checkSequence",
)
