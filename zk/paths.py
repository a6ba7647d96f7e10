"""Kafka's znode paths, and what a path says about its content.

Names follow Kafka's ZNode objects in snake_case (`ZkData.scala@2.6.3`). Only strings; the payloads
are in `zk.client.codec`. A path parser returns None if the path is of another kind.
"""

from __future__ import annotations

CONTROLLER = "/controller"
CONTROLLER_EPOCH = "/controller_epoch"
CLUSTER_ID = "/cluster/id"
CONSUMERS = "/consumers"
BROKER_IDS = "/brokers/ids"
BROKER_SEQUENCE_ID = "/brokers/seqid"
TOPICS = "/brokers/topics"
ISR_CHANGE_NOTIFICATION = "/isr_change_notification"
ISR_CHANGE_PREFIX = "isr_change_"
LOG_DIR_EVENT_NOTIFICATION = "/log_dir_event_notification"
LOG_DIR_EVENT_PREFIX = "log_dir_event_"
DELETE_TOPICS = "/admin/delete_topics"
REASSIGN_PARTITIONS = "/admin/reassign_partitions"
PREFERRED_REPLICA_ELECTION = "/admin/preferred_replica_election"
CONFIG = "/config"
CONFIG_CHANGES = "/config/changes"
CONFIG_CHANGE_PREFIX = "config_change_"
DEFAULT_ENTITY = "<default>"
LATEST_PRODUCER_ID_BLOCK = "/latest_producer_id_block"

CONFIG_TYPES = ("topics", "clients", "users", "brokers")

# ZkData.scala@2.6.3 PersistentZkPaths: every broker creates these at start, in this order.
PERSISTENT_ZK_PATHS = (
    CONSUMERS,
    BROKER_IDS,
    TOPICS,
    CONFIG_CHANGES,
    DELETE_TOPICS,
    BROKER_SEQUENCE_ID,
    ISR_CHANGE_NOTIFICATION,
    LATEST_PRODUCER_ID_BLOCK,
    LOG_DIR_EVENT_NOTIFICATION,
    "/config/topics",
    "/config/clients",
    "/config/users",
    "/config/brokers",
)


def broker_id(broker: int) -> str:
    """ZkData.scala@2.6.3 BrokerIdZNode."""
    return f"{BROKER_IDS}/{broker}"


def topic(name: str) -> str:
    """ZkData.scala@2.6.3 TopicZNode."""
    return f"{TOPICS}/{name}"


def topic_partitions(name: str) -> str:
    """ZkData.scala@2.6.3 TopicPartitionsZNode."""
    return f"{TOPICS}/{name}/partitions"


def topic_partition(name: str, partition: int) -> str:
    """ZkData.scala@2.6.3 TopicPartitionZNode."""
    return f"{TOPICS}/{name}/partitions/{partition}"


def topic_partition_state(name: str, partition: int) -> str:
    """ZkData.scala@2.6.3 TopicPartitionStateZNode."""
    return f"{TOPICS}/{name}/partitions/{partition}/state"


def isr_change_notification_sequence(sequence_number: str = "") -> str:
    """ZkData.scala@2.6.3 IsrChangeNotificationSequenceZNode; without a number: the path for a
    sequential create."""
    return f"{ISR_CHANGE_NOTIFICATION}/{ISR_CHANGE_PREFIX}{sequence_number}"


def isr_change_sequence_number(node: str) -> str:
    """The suffix of `isr_change_NNNNNNNNNN`, from a name or a path."""
    return _after_prefix(node, ISR_CHANGE_PREFIX)


def log_dir_event_notification_sequence(sequence_number: str = "") -> str:
    """ZkData.scala@2.6.3 LogDirEventNotificationSequenceZNode."""
    return f"{LOG_DIR_EVENT_NOTIFICATION}/{LOG_DIR_EVENT_PREFIX}{sequence_number}"


def log_dir_event_sequence_number(node: str) -> str:
    """The suffix of `log_dir_event_NNNNNNNNNN`, from a name or a path."""
    return _after_prefix(node, LOG_DIR_EVENT_PREFIX)


def delete_topic(name: str) -> str:
    """ZkData.scala@2.6.3 DeleteTopicsTopicZNode."""
    return f"{DELETE_TOPICS}/{name}"


def config_entity_type(entity_type: str) -> str:
    """ZkData.scala@2.6.3 ConfigEntityTypeZNode; `entity_type` is one of CONFIG_TYPES."""
    return f"{CONFIG}/{entity_type}"


def config_entity(entity_type: str, entity_name: str) -> str:
    """ZkData.scala@2.6.3 ConfigEntityZNode; the name may be nested, as in
    `users/<u>/clients/<c>`."""
    return f"{CONFIG}/{entity_type}/{entity_name}"


def config_change_notification_sequence(sequence_number: str = "") -> str:
    """ZkData.scala@2.6.3 ConfigEntityChangeNotificationSequenceZNode."""
    return f"{CONFIG_CHANGES}/{CONFIG_CHANGE_PREFIX}{sequence_number}"


def config_change_sequence_number(node: str) -> int:
    """The number of `config_change_NNNNNNNNNN`: brokers apply changes with greater numbers than the
    last one applied."""
    return int(_after_prefix(node, CONFIG_CHANGE_PREFIX))


def parent(path: str) -> str:
    """The parent's path; `/` for a top-level znode."""
    return path[: path.rfind("/")] or "/"


def partition_of_state_path(path: str) -> tuple[str, int] | None:
    """(topic, partition) of a state znode's path."""
    parts = path.split("/")
    if len(parts) != 7 or parts[4] != "partitions" or parts[6] != "state":
        return None
    if not path.startswith(TOPICS + "/") or not parts[5].isdecimal():
        return None
    return parts[3], int(parts[5])


def topic_of_path(path: str) -> str | None:
    """The topic of a topic znode's path; None for the paths below it."""
    return _only_child(path, TOPICS)


def broker_of_path(path: str) -> int | None:
    """The broker id in a registration's path."""
    child = _only_child(path, BROKER_IDS)
    return int(child) if child is not None and child.isdecimal() else None


def config_entity_of_path(path: str) -> tuple[str, str] | None:
    """(entity type, entity name) of a configuration znode's path; the name may be nested."""
    for entity_type in CONFIG_TYPES:
        prefix = f"{CONFIG}/{entity_type}/"
        if path.startswith(prefix) and len(path) > len(prefix):
            return entity_type, path[len(prefix) :]
    return None


def is_about(path: str, topic: str) -> bool:
    """Whether a znode belongs to this topic; without one, to any topic or command."""
    return topic in path.split("/") if topic else path.startswith((f"{TOPICS}/", "/admin/"))


def _only_child(path: str, of: str) -> str | None:
    child = path[len(of) + 1 :]
    return child if path.startswith(of + "/") and child and "/" not in child else None


def _after_prefix(node: str, prefix: str) -> str:
    name = node[node.rfind("/") + 1 :]
    assert name.startswith(prefix), f"{node} is no {prefix} node"
    return name[len(prefix) :]
