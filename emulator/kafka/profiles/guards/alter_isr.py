"""Guards of the path through the controller (KIP-497), on both ends of it.

The leader's are read in `broker/isr_state`, `broker/leader_isr`, `broker/alter_isr_manager` and
`broker/controller_channel`, the controller's in `controller/alter_isr`. Releases before 2.7 have no
such path and count as having them.
"""

from emulator.kafka.profiles.guards.base import Guard

_FIRST = "2.7"

MAXIMAL_ISR = Guard(
    name="maximal-isr",
    kafka="KIP-497",
    since=_FIRST,
    does="The high watermark and acks=all wait for the maximal ISR while a change is pending."
    " Without it: for the committed ISR; a replica that the controller adds meanwhile may"
    " lack acknowledged records.",
    citation="spec §7.1; Partition.scala@2.7.2 maybeIncrementLeaderHW",
    unneeded_before=_FIRST,
)

EQUAL_VERSION_IS_SUCCESS = Guard(
    name="equal-version-is-success",
    kafka="KAFKA-12751",
    since="2.7.2",
    does="A response with the version that the leader already has means that the change is in"
    " place. Without it: the response is ignored, and the proposal stays pending for ever.",
    citation="spec §7.5, hazards B29; Partition.scala@2.7.2 handleAlterIsrResponse",
    unneeded_before=_FIRST,
)

EVENT_DRIVEN_ALTER_ISR = Guard(
    name="event-driven-alter-isr",
    kafka="KIP-497",
    since="2.8",
    does="A proposal is sent when it is made, and the next ones when the response arrives."
    " Without it: a task checks every 50 ms.",
    citation="spec §7.2; AlterIsrManager.scala@2.8.2 maybePropagateIsrChanges",
    unneeded_before=_FIRST,
)

CONTROLLER_ASKED_FOR_VERSIONS = Guard(
    name="controller-asked-for-versions",
    kafka="KIP-590",
    since="2.8",
    does="A broker that connects to the controller asks for its API versions. A request that"
    " an older controller does not know is answered locally, and the manager proposes"
    " again 50 ms later. Without it: the request is sent, the older broker closes the"
    " connection, and the search for the controller restarts endlessly.",
    citation="spec §7.2; BrokerToControllerChannelManager.scala@2.8.2 handleResponse",
    unneeded_before=_FIRST,
)

ONE_ISR_STATE_MACHINE = Guard(
    name="one-isr-state-machine",
    kafka="KIP-497",
    since="2.8",
    does="The ZooKeeper path also uses the pending state; a failed write leaves it pending"
    " until the next LeaderAndIsr. Without it: the leader tries again with each trigger.",
    citation="spec §7.6; ZkIsrManager.scala@2.8.2 submit",
)

KEEP_IN_FLIGHT = Guard(
    name="keep-in-flight",
    kafka="KAFKA-12686",
    since="3.0",
    does="LeaderAndIsr keeps a proposal that is in flight in the map, and a refused one takes"
    " the leader back to the committed ISR. Without it: the next proposal takes its place"
    " there, and the response to the first removes it unsent.",
    citation="spec §7.1, hazards B29; AlterIsrManager.scala@2.8.2 clearPending",
    unneeded_before=_FIRST,
)

HW_AFTER_ALTER_ISR = Guard(
    name="hw-after-alter-isr",
    kafka="KAFKA-13091",
    since="3.1",
    does="The high watermark is checked again when a change is committed. Without it: acks=all"
    " requests that waited for a removed replica wait for the next append or fetch. That check"
    " completes requests, so from the same version on a change is submitted without the partition's"
    " lock. Without it: a leader that writes its ISR to ZooKeeper holds the lock meanwhile.",
    citation="spec §7.5, H18; Partition.scala@3.1.0 handleAlterIsrUpdate, submitAlterIsr",
    unneeded_before=_FIRST,
)

CLEAR_BEFORE_CALLBACK = Guard(
    name="clear-before-callback",
    kafka="KAFKA-14010",
    since="3.2.1",
    does="An answered proposal leaves the map before the leader's callback runs, so that it"
    " can be proposed again. Without it: that is refused, and the partition stays pending.",
    citation="spec §7.5, H19; AlterPartitionManager.scala@3.2.3 handleAlterPartitionResponse",
    unneeded_before=_FIRST,
)

BACK_IF_NOT_ATTEMPTED = Guard(
    name="back-if-not-attempted",
    kafka="KAFKA-14140",
    since="3.3",
    does="INELIGIBLE_REPLICA and OPERATION_NOT_ATTEMPTED return the leader to the committed"
    " ISR, and INVALID_REQUEST is final. Without it: the leader repeats its proposal.",
    citation="spec §7.5; Partition.scala@3.3.2 handleAlterPartitionError",
    unneeded_before=_FIRST,
)

ELIGIBLE_MEMBERS = Guard(
    name="eligible-members",
    kafka="KIP-841",
    since="3.3",
    does="The controller adds a broker to an ISR only if it is live and not shutting down."
    " Without it: a dead broker stays in the ISR for the lag time.",
    citation="spec §7.4, H15, H21; KafkaController.scala@3.3.2 tryProcessAlterPartition",
    unneeded_before=_FIRST,
)

LIVE_MEMBERS_PROPOSED = Guard(
    name="live-members-proposed",
    kafka="KIP-841",
    since="3.3",
    does="A leader adds a follower only if its metadata lists it as live. Without it: it proposes"
    " a broker whose session has ended, and the controller refuses at each of its fetches.",
    citation="spec §7.2; Partition.scala@3.3.2 isReplicaIsrEligible (bytecode; recording of 3.3.2"
    " lag-before-session)",
)

AHEAD_OF_THE_CONTROLLER = Guard(
    name="ahead-of-the-controller",
    kafka="KAFKA-14154",
    since="3.3",
    does="A controller that receives a greater epoch or version than it knows answers"
    " NOT_CONTROLLER, and an older version is refused at once. Without it: it answers from"
    " an outdated cache.",
    citation="spec §7.4, hazards B30; KafkaController.scala@3.3.2 tryProcessAlterPartition",
    unneeded_before=_FIRST,
)

MEMBER_EPOCHS = Guard(
    name="member-epochs",
    kafka="KIP-903",
    since="3.5",
    does="A leader names each member with the broker epoch of its fetches, and the controller"
    " rejects a broker that has restarted since. Without it: a replica that returns"
    " without its records joins on the evidence of its old process. No version with"
    " ZooKeeper has it.",
    citation="hazards B22; KIP-903, AlterPartition v3 NewIsrWithEpochs",
)

DONE_BEFORE_OUTDATED = Guard(
    name="done-before-outdated",
    kafka="KAFKA-14144",
    since="3.3",
    does="A controller checks first whether the proposed state is already in place, then the"
    " version. Without it: a proposal that is repeated because its response was lost is"
    " refused for good.",
    citation="hazards B30; KafkaController.scala@3.3.0 tryProcessAlterPartition",
    unneeded_before="3.3",
)

GREATER_EPOCH_IS_A_SUCCESSORS = Guard(
    name="greater-epoch-is-a-successors",
    kafka="KAFKA-14154",
    since="3.3",
    does="A controller that receives a greater leader epoch than it knows answers"
    " NOT_CONTROLLER. Without it (trunk, 2022): FENCED_LEADER_EPOCH, after which the"
    " leader waits for a LeaderAndIsr that will not come.",
    citation="hazards B30; KafkaController.scala@3.3.0 tryProcessAlterPartition",
    unneeded_before="3.3",
)
