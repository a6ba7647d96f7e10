"""Kafka's paths, and what a path says about its contents."""

from zk import paths


def test_paths_are_kafka_s() -> None:
    assert paths.broker_id(7) == "/brokers/ids/7"
    assert paths.topic("orders") == "/brokers/topics/orders"
    assert paths.topic_partitions("orders") == "/brokers/topics/orders/partitions"
    assert paths.topic_partition("orders", 3) == "/brokers/topics/orders/partitions/3"
    assert paths.topic_partition_state("orders", 3) == "/brokers/topics/orders/partitions/3/state"
    assert paths.isr_change_notification_sequence() == "/isr_change_notification/isr_change_"
    assert paths.log_dir_event_notification_sequence("0000000001") == (
        "/log_dir_event_notification/log_dir_event_0000000001"
    )
    assert paths.delete_topic("orders") == "/admin/delete_topics/orders"
    assert paths.config_entity_type("users") == "/config/users"
    assert paths.config_entity("users", "u/clients/c") == "/config/users/u/clients/c"
    assert paths.config_change_notification_sequence() == "/config/changes/config_change_"


def test_the_paths_created_at_start_are_the_recorded_ones_in_their_order() -> None:
    assert paths.PERSISTENT_ZK_PATHS == (
        "/consumers",
        "/brokers/ids",
        "/brokers/topics",
        "/config/changes",
        "/admin/delete_topics",
        "/brokers/seqid",
        "/isr_change_notification",
        "/latest_producer_id_block",
        "/log_dir_event_notification",
        "/config/topics",
        "/config/clients",
        "/config/users",
        "/config/brokers",
    )


def test_a_parser_answers_none_for_what_is_not_of_its_kind() -> None:
    assert paths.partition_of_state_path("/brokers/topics/t-1/partitions/12/state") == ("t-1", 12)
    for path in (
        "/brokers/topics/t/partitions/1",
        "/brokers/topics/t/partitions/x/state",
        "/other/topics/t/partitions/1/state",
        "/brokers/topics/t/partitions/1/state/x",
    ):
        assert paths.partition_of_state_path(path) is None
    assert paths.topic_of_path("/brokers/topics/t") == "t"
    assert paths.topic_of_path("/brokers/topics/t/partitions") is None
    assert paths.topic_of_path("/brokers/topics") is None
    assert paths.broker_of_path("/brokers/ids/12") == 12
    assert paths.broker_of_path("/brokers/ids/x") is None
    assert paths.config_entity_of_path("/config/users/u/clients/c") == ("users", "u/clients/c")
    assert paths.config_entity_of_path("/config/changes/x") is None


def test_suffixes_of_sequential_nodes() -> None:
    assert paths.isr_change_sequence_number("isr_change_0000000012") == "0000000012"
    assert paths.isr_change_sequence_number("/isr_change_notification/isr_change_7") == "7"
    assert paths.log_dir_event_sequence_number("log_dir_event_0000000000") == "0000000000"
    assert paths.config_change_sequence_number("config_change_0000000042") == 42


def test_parents() -> None:
    assert paths.parent("/a/b") == "/a"
    assert paths.parent("/a") == "/"
