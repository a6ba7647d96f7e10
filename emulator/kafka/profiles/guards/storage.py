"""Guards of logs: when their configuration is read, and what a crash of the machine leaves of a
broker's files.

Read in `broker/log_manager`, and in `worlds/storage/stored_logs`, where files are made and renamed;
a log in memory has none.
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

CONFIG_READ_FOR_NEW_LOGS = Guard(
    name="config-read-for-new-logs",
    kafka="KAFKA-9932",
    since="2.6",
    does="A broker that takes a role reads the topic's configuration only if it has no log of the"
    " partition yet. Without it: it reads the configuration of a log that exists, too, and the"
    " LeaderAndIsr waits for ZooKeeper.",
    citation="spec §3.8; LogManager.scala@2.5.1, @2.6.3 getOrCreateLog (bytecode); recordings",
)
