"""Guards of the controller and of what it asks of ZooKeeper and of brokers.

Read in `controller/`, and where a broker makes its ZooKeeper client (`broker/zookeeper`).
"""

from emulator.kafka.profiles.guards.base import Guard

OWN_EPHEMERAL_CHECKED = Guard(
    name="own-ephemeral-checked",
    kafka="KAFKA-1387",
    since="0.9",
    does="A broker recognises an existing registration as its own by its session, and creates"
    " missing parents. Without it: a node with the same content is taken for one of an"
    " earlier session and waited for until that session expires (KAFKA-992); parents are"
    " not created.",
    citation="spec §2.8, §2.12; ZKCheckedEphemeral in ZkUtils.scala@0.9.0.1,"
    " createEphemeralPathExpectConflictHandleZKBug@0.8.2.2",
)

DELETION_MARKERS_CLEARED = Guard(
    name="deletion-markers-cleared",
    kafka="KAFKA-3175",
    since="0.10.0",
    does="Where delete.topic.enable is false, the controller removes markers of deletion."
    " Without it: it does not watch them, and they stay.",
    citation="spec §6.14; PartitionStateMachine.scala@0.10.2.2 DeleteTopicsListener,"
    " registerListeners@0.9.0.1 and @0.8.2.2 (bytecode); recordings of both",
)

DISABLED_DELETION_IS_AN_ERROR = Guard(
    name="disabled-deletion-is-an-error",
    kafka="KIP-322",
    since="2.1",
    does="Where delete.topic.enable is false, a broker answers DeleteTopics with"
    " TOPIC_DELETION_DISABLED. Without it: it creates the marker, which the controller removes,"
    " and the request times out.",
    citation="spec §6.14; KafkaApis.scala@2.1.1 handleDeleteTopicsRequest (bytecode; recording of"
    " 0.10.2.2 topic-lifecycle)",
)

EXISTING_TOPICS_KNOWN = Guard(
    name="existing-topics-known",
    kafka="KAFKA-8875",
    since="2.4",
    does="A broker that is to create a topic looks for it in its metadata first. Without it: it"
    " asks ZooKeeper, after all other checks.",
    citation="spec §2.12; AdminManager.scala@2.4.1 createTopics (bytecode; recording of 0.10.2.2"
    " topic-lifecycle)",
)

BROKER_LIST_ANNOUNCED = Guard(
    name="broker-list-announced",
    kafka="KAFKA-972",
    since="0.9",
    does="Every broker receives an UpdateMetadata when a broker joins, and when one dies that led"
    " no partition. Without it: the first UpdateMetadata goes to the new broker alone, and a death"
    " without an election is not announced. Where no replica changes, metadata lists the wrong"
    " brokers.",
    citation="spec §6.4; KafkaController.scala@0.8.2.2 onBrokerStartup, onBrokerFailure; recording"
    " of 0.8.2.2",
)

UPDATE_METADATA_FIRST = Guard(
    name="update-metadata-first",
    kafka="KAFKA-4443",
    since="0.10.2",
    does="At fail-over UpdateMetadata precedes LeaderAndIsr. Without it: a follower receives a"
    " leader that is not in its metadata cache, and does nothing (H28).",
    citation="spec §6.2, H28; KafkaController.scala@0.10.2.2 onControllerFailover",
)

BROKERS_READ_AGAIN = Guard(
    name="brokers-read-again",
    kafka="KAFKA-5502",
    since="0.11",
    does="A change of brokers is processed with the list at that moment. Without it: with the"
    " list that came with the event.",
    citation="spec §2.12, §9; KafkaController.scala@0.11.0.2 BrokerChange",
)

NOTIFICATIONS_READ_AGAIN = Guard(
    name="notifications-read-again",
    kafka="KAFKA-5879",
    since="1.1",
    does="Notifications of ISR changes are listed when their event is processed, and purged at"
    " fail-over. Without it: the list that came with the event is used (H11), and"
    " left-over notifications stay until the next event (H10).",
    citation="spec §6.6, H10, H11; KafkaController.scala@1.1.1 processIsrChangeNotification",
)

LAST_ISR_MEMBER_STAYS = Guard(
    name="last-isr-member-stays",
    kafka="KAFKA-5642",
    since="1.1",
    does="The last ISR member is kept when its broker dies. Without it: it is kept only where"
    " unclean elections are forbidden; otherwise the ISR becomes empty.",
    citation="spec §6.8; ReplicaStateMachine.scala@1.1.1 removeReplicasFromIsr",
)

FENCED_CONTROLLER_WRITES = Guard(
    name="fenced-controller-writes",
    kafka="KAFKA-6082",
    since="2.1",
    does="Every write of a controller checks the version of /controller_epoch, and a"
    " controller deletes /controller only if it owns it. Without it: a replaced controller"
    " continues to write (H6), and may delete its successor's node (H7).",
    citation="spec §2.6, H6, H7; KafkaZkClient.scala@2.1.1 wrapRequestWithControllerEpochCheck",
)

ATOMIC_ELECTION = Guard(
    name="atomic-election",
    kafka="KAFKA-6082",
    since="2.1",
    does="/controller and its epoch are written in one multi. Without it: in three steps,"
    " between which another broker may be elected with a lower epoch (H8). The first"
    " controller then expects version 1 of /controller_epoch, which is 0: with"
    " `fenced-controller-writes`, which came with it, all of that controller's writes"
    " fail.",
    citation="spec §2.7, H8; KafkaZkClient.scala@2.1.1"
    " registerControllerAndIncrementControllerEpoch",
)

BROKER_EPOCHS = Guard(
    name="broker-epochs",
    kafka="KAFKA-7235",
    since="2.2",
    does="The czxid of a registration is the broker's epoch: the controller sees a bounce, and"
    " requests name the process that they are for. Without it: a quick restart goes"
    " unnoticed (H13).",
    citation="spec §2.8, §6.4, H13; KafkaController.scala@2.2.2 processBrokerChange",
)

STALE_REGISTRATION_REPLACED = Guard(
    name="stale-registration-replaced",
    kafka="KAFKA-7165",
    since="2.2",
    does="A broker deletes and recreates a registration that an expired session of the same"
    " process has left. Without it: registering under the new session fails"
    " (ZOOKEEPER-2985).",
    citation="spec §2.8; KafkaZkClient.scala@2.2.2 CheckedEphemeral",
)

OFFLINE_REPLICAS_AT_FAILOVER = Guard(
    name="offline-replicas-at-failover",
    kafka="KAFKA-3143",
    since="2.3",
    does="A new controller removes the replicas of dead brokers from the ISR. Without it: they"
    " stay there until their leader shrinks the ISR.",
    citation="spec §6.2; ReplicaStateMachine.scala@2.3.1 startup",
)

PREFERRED_ONLY_WHERE_NEEDED = Guard(
    name="preferred-only-where-needed",
    kafka="KIP-183",
    since="2.2",
    unneeded_before="1.1",
    does="A commanded election leaves out the partitions whose preferred replica leads. Without it"
    " (from 1.1 on): they are elected again and get a new leader epoch.",
    citation="spec §6.12; KafkaController.scala@2.2.2 and @2.1.1 PreferredReplicaLeaderElection"
    " (bytecode; recordings of 1.1.1 and 2.1.1 five-brokers-moves)",
)

PREFERRED_ONLY_IF_ELECTABLE = Guard(
    name="preferred-only-if-electable",
    kafka="KAFKA-9866",
    since="2.6",
    does="The automatic rebalance elects preferred leaders only where they are live and in the"
    " ISR. Without it: it tries, and fails, each time.",
    citation="spec §6.12; KafkaController.scala@2.6.3 checkAndTriggerAutoLeaderRebalance",
)

STOP_REPLICA_EPOCH = Guard(
    name="stop-replica-epoch",
    kafka="KIP-570",
    since="2.6",
    does="StopReplica carries the leader epoch, and a broker refuses one that is not newer"
    " than its own. Without it: a broker obeys every StopReplica, however late.",
    citation="spec §4.4, §6.9; ReplicaManager.scala@2.6.3 stopReplicas",
)

ONLY_THE_ACTIVE_LISTENS = Guard(
    name="only-the-active-listens",
    kafka="KAFKA-4447",
    since="0.10.2",
    does="A resigned controller ignores what reaches its listeners late. Without it: it informs"
    " no broker of a notification and deletes it, so that its successor cannot read it; and"
    " it reads a topic's znode.",
    citation="hazards B7; ControllerZkListener in KafkaController.scala@0.10.2.2; recordings of"
    " 0.8.2.2 and 0.9.0.1 min-isr",
)

EMPTY_MEANS_NONE = Guard(
    name="empty-means-none",
    kafka="KAFKA-2722",
    since="0.9",
    does="An empty list of notifications sends nothing. Without it: the event that follows the"
    " deletion of every notification sends all partitions to all brokers.",
    citation="hazards B16; IsrChangeNotificationListener in KafkaController.scala@0.9.0.1",
)

DELETIONS_SENT_ONCE = Guard(
    name="deletions-sent-once",
    kafka="KAFKA-6630",
    since="2.0",
    does="An UpdateMetadata names a partition that is to be deleted only if it is about that"
    " partition. Without it: every UpdateMetadata names all partitions of topics that are to be"
    " deleted, until their znodes are gone.",
    citation="spec §6.9; ControllerBrokerRequestBatch@1.1.1 and @2.0.1"
    " addUpdateMetadataRequestForBrokers",
)

SMALL_UPDATE_METADATA = Guard(
    name="small-update-metadata",
    kafka="KAFKA-7537",
    since="2.2",
    does="An UpdateMetadata about brokers alone names no partition. Without it: it carries"
    " every partition in the controller's context, to every broker, whenever a broker"
    " joins or leaves.",
    citation="spec §6.2, §6.9; ControllerBrokerRequestBatch@2.1.1"
    " addUpdateMetadataRequestForBrokers",
)

SHUTTING_DOWN_ARE_TOLD = Guard(
    name="shutting-down-are-told",
    kafka="KAFKA-7482",
    since="2.1",
    does="LeaderAndIsr is also sent to brokers that are shutting down. Without it: such a"
    " broker does not learn of the new leaders, and continues as leader until it ends.",
    citation="hazards B21; ControllerBrokerRequestBatch@2.1.1 sendRequestsToBrokers",
    unneeded_before="1.1",
)

BUMPED_EPOCH_REMEMBERED = Guard(
    name="bumped-epoch-remembered",
    kafka="KAFKA-9212",
    since="2.4",
    does="The leader epoch that a reassignment raises is stored in the controller's context."
    " Without it: the next UpdateMetadata carries the old epoch, and clients are fenced by"
    " the leader.",
    citation="hazards B17; KafkaController.scala@2.4.0 updateLeaderEpochAndSendRequest",
)

ALL_OFFLINE_LEADERS_ARE_REPLACED = Guard(
    name="all-offline-leaders-are-replaced",
    kafka="KIP-112",
    since="1.0",
    does="When a broker dies, every partition without an online leader becomes offline and gets"
    " a new leader, and a broker that is shutting down is not online. Without it: only the"
    " partitions of the dead brokers.",
    citation="spec §6.4; KafkaController.scala@1.0.2 onReplicasBecomeOffline, and up to 0.10.2.2"
    " onBrokerFailure (read from bytecode)",
)

MOVES_TO_DEAD_BROKERS_BEGIN = Guard(
    name="moves-to-dead-brokers-begin",
    kafka="KAFKA-4214",
    since="0.10.1",
    does="A move that a command names begins, or goes on under a new controller, while one of its"
    " targets is down. Without it: it is dropped from the command.",
    citation="spec §6.13; KafkaController.scala@0.10.0.1"
    " initiateReassignReplicasForTopicPartition, without that test in @0.10.2.2",
)

EVERY_DEATH_IS_TOLD = Guard(
    name="every-death-is-told",
    kafka="KAFKA-13225",
    since="3.1",
    does="A broker's death gets an UpdateMetadata of its own unless an ISR removal or an election"
    " sends one. Without it: unless a partition has lost its leader, even if none is elected. Then"
    " metadata still lists the broker.",
    citation="hazards B17; KafkaController.scala@3.1.0 onReplicasBecomeOffline",
)

CALLBACKS_OUTSIDE_THE_LOCK = Guard(
    name="callbacks-outside-the-lock",
    kafka="KAFKA-6879",
    since="1.1.1",
    does="The callbacks before a new session run before the client's lock is taken. Without"
    " it: the controller's thread needs the lock for its next request, and the thread that"
    " holds the lock waits for the controller's.",
    citation="hazards B9; ZooKeeperClient.scala@1.1.1 reinitialize",
    unneeded_before="1.1",
)

ADDED_REPLICAS_ARE_NEW = Guard(
    name="added-replicas-are-new",
    kafka="KIP-455",
    since="2.7",
    does="The first LeaderAndIsr of a reassignment marks the added replicas as new. Without"
    " it: the second one does, and the brokers ignore it.",
    citation="spec §6.13, recordings of 2.6.3 and 2.7.2 (isr record), no ticket found;"
    " KafkaController.scala@2.7.2 updateLeaderEpochAndSendRequest",
)

ADDED_REPLICAS_GO_ONLINE_TOGETHER = Guard(
    name="added-replicas-go-online-together",
    kafka="KIP-455",
    since="2.4",
    does="When a reassignment completes, the added replicas go online in one batch. Without"
    " it: every replica of the target does, each in a batch of its own, and every broker receives"
    " as many UpdateMetadata requests.",
    citation="spec §6.13, KafkaController.scala@2.6.3 and @1.1.1 onPartitionReassignment",
)

SEND_THREAD_SHUTDOWN_ENDS_REQUEST = Guard(
    name="send-thread-shutdown-ends-request",
    kafka="KAFKA-4959",
    since="2.0.1",
    unneeded_before="0.10.2",
    does="The end of a send thread closes its connection first. Without it (from 0.10.2, for"
    " KAFKA-4959, to 1.1): the controller waits for the response to the request in flight. If a"
    " paused broker's session expires, it elects no other leaders until that broker runs again,"
    " or until request.timeout.ms.",
    citation="spec §6.10; ControllerChannelManager.scala@1.1.1 removeExistingBroker, @2.0.1"
    " RequestSendThread.initiateShutdown (bytecode; recordings of 0.10.2.2, 1.0.2 and 1.1.1"
    " five-brokers-pauses)",
)

REMOVED_REPLICAS_NOT_SENT_ROLES = Guard(
    name="removed-replicas-not-sent-roles",
    kafka="KIP-455",
    since="2.4",
    does="When a reassignment completes, the leader's new epoch is sent to the target replicas."
    " Without it: to the removed ones, too, just before they are stopped.",
    citation="spec §6.13, KafkaController.scala@2.6.3 and @2.1.1 updateLeaderEpochAndSendRequest"
    " (bytecode; recordings of 0.8.2.2 to 2.1.1 five-brokers-moves)",
)

MOVING_REPLICAS_IN_ORDER = Guard(
    name="moving-replicas-in-order",
    kafka="KIP-455",
    since="2.4",
    does="During a reassignment a partition's replicas are the target ones, then the others."
    " Without it: they are a Set, whose order from five on is that of its hashes.",
    citation="spec §6.13, KafkaController.scala@2.6.3 and @2.1.1 onPartitionReassignment"
    " (recordings of 0.8.2.2 to 2.1.1 five-brokers-moves)",
)

MOVE_WRITTEN_BEFORE_IT_IS_CHECKED = Guard(
    name="move-written-before-it-is-checked",
    kafka="KIP-455",
    since="2.4",
    does="A controller writes a reassignment to the topic's znode before it looks whether the"
    " replicas are in sync. Without it: it looks first, and writes only if they are not.",
    citation="spec §6.13, KafkaController.scala@2.6.3 and @1.1.1 onPartitionReassignment",
)

ONLY_A_DEAD_SESSION_IS_REPLACED = Guard(
    name="only-a-dead-session-is-replaced",
    kafka="KAFKA-13461",
    since="3.0.1",
    does="After a failed authentication a new session begins only if the old one is over."
    " Without it: the controller resigns, finds /controller with its own id and stops; no"
    " broker is controller.",
    citation="hazards B8; ZooKeeperClient.scala@3.0.1 scheduleReinitialize",
    unneeded_before="2.8",
)

EPOCH_ONLY_FROM_ELECTION = Guard(
    name="epoch-only-from-election",
    kafka="KAFKA-1096",
    since="0.8.2",
    does="A controller keeps the epoch of its election. Without it: every broker watches"
    " /controller_epoch, and a controller that has not noticed its replacement adopts its"
    " successor's epoch.",
    citation="hazards B6; ControllerEpochListener in KafkaController.scala@0.8.1.1 (bytecode)",
)

REPLACED_RESIGNS = Guard(
    name="replaced-resigns",
    kafka="KAFKA-1096",
    since="0.9",
    does="A controller resigns when it reads another id in /controller. Without it: only when"
    " it reads that the node is gone; if it looks too late it stays active beside its"
    " successor.",
    citation="hazards B6, no ticket found; LeaderChangeListener in"
    " ZookeeperLeaderElector.scala@0.8.2.2 and @0.9.0.1 (bytecode)",
)

UNBOUNDED_SEND_QUEUES = Guard(
    name="unbounded-send-queues",
    kafka="KAFKA-1305",
    since="0.8.2",
    does="The queue of requests to a broker is unbounded. Without it: it holds ten. The thread"
    " that adds the next one waits for room while it holds the lock needed to process the"
    " broker's death.",
    citation="hazards B, small ones; ControllerChannelManager.scala@0.8.1.1 sendRequest",
)

OWN_CONTROLLER_ZNODE_KEPT = Guard(
    name="own-controller-znode-kept",
    kafka="KAFKA-4229",
    since="0.10.2",
    does="With a new session a broker reads `/controller` first, and does nothing if it has its id."
    " Without it: it resigns and runs for election. If the session before this one has created the"
    " znode meanwhile, that election is lost against itself: nobody acts as controller.",
    citation="spec §2.10, hazards B8; SessionExpirationListener in KafkaController.scala@0.10.2.2"
    " (recordings: one read up to 0.9, two in 0.10.2.2)",
)

MOVES_FORGOTTEN_AT_RESIGNATION = Guard(
    name="moves-forgotten-at-resignation",
    kafka="KAFKA-5310",
    since="0.11",
    does="A controller that resigns clears its list of reassignments. Without it: when it is"
    " elected again it restarts them, even those that were cancelled meanwhile.",
    citation="hazards B, small ones; KafkaController.scala@0.10.2.2 onControllerResignation,"
    " initializePartitionReassignment",
)

COMMAND_READ_AFTER_START_UP = Guard(
    name="command-read-after-start-up",
    kafka="KIP-455",
    since="2.4",
    does="A new controller looks for a reassignment command when its state machines have started."
    " Without it: it reads the command with its context, before the deletions of topics.",
    citation="spec §6.2, KafkaController.scala@2.6.3 and @1.1.1 initializeControllerContext",
)

COMMAND_LISTED_BEFORE_DELETION = Guard(
    name="command-listed-before-deletion",
    kafka="KIP-455",
    since="2.4",
    does="A controller deletes the command znode of reassignments as any other path: it lists the"
    " children first. Without it: the znode is deleted at once.",
    citation="spec §6.13; KafkaZkClient.scala@2.6.3 deletePartitionReassignment, deletePath",
)

COMMAND_READ_BEFORE_REMOVAL = Guard(
    name="command-read-before-removal",
    kafka="KIP-455",
    since="2.4",
    does="A controller reads the command of reassignments before it takes a partition out."
    " Without it: it writes the moves that it knows, or deletes the znode if it knows none; what"
    " was commanded meanwhile is lost.",
    citation="spec §6.13; KafkaController.scala@1.1.1 removePartitionFromReassignedPartitions,"
    " @2.6.3 maybeRemoveFromZkReassignment",
    unneeded_before="1.1",
)

COMMAND_WRITTEN_IF_CHANGED = Guard(
    name="command-written-if-changed",
    kafka="KIP-455",
    since="2.4",
    does="A controller that begins reassignments writes the command only if it takes something"
    " out. Without it: it writes it always, and a new controller without moves deletes a znode"
    " that is not there.",
    citation="spec §6.2, §6.13; KafkaController.scala@2.1.1 maybeTriggerPartitionReassignment",
    unneeded_before="2.0",
)

ONLY_A_MOVING_TOPIC_REFUSES_PARTITIONS = Guard(
    name="only-a-moving-topic-refuses-partitions",
    kafka="KIP-455",
    since="2.4",
    does="CreatePartitions is refused while a partition of that topic moves. Without it: while the"
    " command znode of reassignments exists, whatever its topics.",
    citation="spec §6.13; AdminManager.scala@1.1.1 and @2.4.1 createPartitions",
    unneeded_before="1.0",
)

DEAD_REPLICAS_ARE_INELIGIBLE = Guard(
    name="dead-replicas-are-ineligible",
    kafka="KAFKA-8237",
    since="2.3",
    does="When the deletion of a topic begins, a replica on a dead broker becomes ineligible, and"
    " is taken offline again when the others are deleted. Without it: only a replica whose deletion"
    " has begun can become ineligible; one on a dead broker stays offline.",
    citation="spec §6.8, §6.14; ReplicaStateMachine.scala@2.1.1 and @2.4.1"
    " ReplicaDeletionIneligible.validPreviousStates",
)

DELETION_CHECKED_AT_CREATION = Guard(
    name="deletion-checked-at-creation",
    kafka="KAFKA-13175",
    since="3.1",
    does="CreateTopics first looks whether the topic is marked for deletion. Without it: it finds"
    " only that the topic exists.",
    citation="spec §2.12, recording of 3.3.2; AdminZkClient.scala@3.3.2 validateTopicCreate",
)

TOPIC_IDS_READ = Guard(
    name="topic-ids-read",
    kafka="KIP-516",
    since="2.8",
    does="A broker reads a topic's znode again, for the topic id, after it has created the topic,"
    " and before it adds partitions. Without it: it does not.",
    citation="spec §2.12, recordings of 2.8.2 and 3.3.2; ZkAdminManager.scala@2.8.2 populateIds,"
    " AdminZkClient.scala@2.8.2 writeTopicPartitionAssignment",
)

NEW_BROKERS_NOT_SENT_DELETIONS = Guard(
    name="new-brokers-not-sent-deletions",
    kafka="KAFKA-8237",
    since="2.7",
    does="The first UpdateMetadata to a broker that joins leaves topics out that are to be deleted."
    " Without it: it names them, without a leader.",
    citation="spec §6.4, no ticket found, recording of 3.3.2; ControllerContext.scala@2.7.2"
    " partitionsWithLeaders",
)

DROPPED_REASSIGNMENT_CALLS_ANSWERED = Guard(
    name="dropped-reassignment-calls-answered",
    kafka="KAFKA-10193",
    since="2.7",
    does="A controller whose session ends answers the reassignment calls that it drops, to change"
    " and to list, with NOT_CONTROLLER. Without it: they wait for the client's timeout.",
    citation="spec §2.10; KafkaController.scala@2.7.2 ApiPartitionReassignment.preempt,"
    " ListPartitionReassignments.preempt",
    unneeded_before="2.4",
)

NOTIFIED_MOVES_COMPLETE = Guard(
    name="notified-moves-complete",
    kafka="KAFKA-10521",
    since="2.7",
    does="A notification of ISR changes makes the controller check whether a reassignment is"
    " complete. Without it: a controller that expects AlterIsr watches no partition state."
    " A leader that still writes ISRs itself (an older inter.broker.protocol.version) then"
    " leaves a reassignment pending for ever.",
    citation="hazards B, small ones; KafkaController.scala@2.7.2 processIsrChangeNotification"
    " (bytecode)",
    unneeded_before="2.7",
)
