"""Guards of consumer groups: when committed offsets expire.

Read in `coordinator/group_metadata_manager`, where offsets are stored, loaded and removed.
"""

from emulator.kafka.profiles.guards.base import Guard

OFFSETS_EXPIRE_WITH_GROUP = Guard(
    name="offsets-expire-with-group",
    kafka="KIP-211",
    since="2.1",
    does="Committed offsets of a group expire when it has had no members for"
    " offsets.retention.minutes. Without it: that long after their commit, even if the group has"
    " members.",
    citation="GroupMetadata.scala@2.6.3 removeExpiredOffsets, GroupMetadata.scala@1.1.1",
)
