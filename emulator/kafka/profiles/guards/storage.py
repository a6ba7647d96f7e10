"""Guards of what a crash of the machine leaves of a broker's files.

Read in `worlds/storage/stored_logs`, where files are made and renamed; a log in memory has none.
"""

from emulator.kafka.profiles.guards.base import Guard

DIRECTORIES_FLUSHED = Guard(
    name="directories-flushed",
    kafka="KAFKA-3968",
    since="3.0",
    does="The directory is flushed when a checkpoint file was renamed, and with the first flush of"
    " a new segment. Without it: after a crash of the machine the file may be the one before, and"
    " a flushed segment may be missing.",
    citation="spec §1.8; Utils.java@3.3.2 atomicMoveWithFallback, LocalLog.scala@3.3.2 flush",
)
