"""confluent-kafka, idempotent: `produce BOOTSTRAP TOPIC COUNT` or `consume BOOTSTRAP TOPIC`."""

import sys

import confluent_kafka

mode, bootstrap, topic, *rest = sys.argv[1:]
settings = {"bootstrap.servers": bootstrap, "log_level": 0}
if mode == "produce":
    producer = confluent_kafka.Producer({**settings, "enable.idempotence": True})

    def delivered(error, message):
        assert error is None, error
        print(message.value().decode(), flush=True)

    for n in range(int(rest[0])):
        producer.produce(topic, b"%d" % n, on_delivery=delivered)
        producer.flush(60)
else:
    group = {"group.id": f"group-{topic}", "auto.offset.reset": "earliest"}
    consumer = confluent_kafka.Consumer({**settings, **group})
    consumer.subscribe([topic])
    while True:
        message = consumer.poll(1)
        if message is not None and message.error() is None:
            print(message.value().decode(), flush=True)
