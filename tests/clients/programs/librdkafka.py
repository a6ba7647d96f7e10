"""confluent-kafka, idempotent.

`produce BOOTSTRAP TOPIC` sends each line of its input and prints it when it is acknowledged;
`consume BOOTSTRAP TOPIC`; `delete BOOTSTRAP TOPIC OFFSET` prints where the log starts then.
"""

import sys

import confluent_kafka
import confluent_kafka.admin

mode, bootstrap, topic, *rest = sys.argv[1:]
settings = {"bootstrap.servers": bootstrap, "log_level": 0}
if mode == "produce":
    producer = confluent_kafka.Producer({**settings, "enable.idempotence": True})

    def delivered(error, message):
        assert error is None, error
        print(message.value().decode(), flush=True)

    for line in sys.stdin:
        producer.produce(topic, line.strip().encode(), on_delivery=delivered)
        producer.flush(60)
elif mode == "delete":
    administrator = confluent_kafka.admin.AdminClient(settings)
    before = confluent_kafka.TopicPartition(topic, 0, int(rest[0]))
    (deletion,) = administrator.delete_records([before]).values()
    print(deletion.result(60).low_watermark)
else:
    group = {"group.id": f"group-{topic}", "auto.offset.reset": "earliest"}
    consumer = confluent_kafka.Consumer({**settings, **group})
    consumer.subscribe([topic])
    while True:
        message = consumer.poll(1)
        if message is not None and message.error() is None:
            print(message.value().decode(), flush=True)
