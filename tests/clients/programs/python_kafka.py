"""kafka-python with its defaults.

`produce BOOTSTRAP TOPIC` sends each line of its input and prints it when it is acknowledged;
`consume BOOTSTRAP TOPIC`; `delete BOOTSTRAP TOPIC OFFSET` prints where the log starts then.
"""

import sys

import kafka

mode, bootstrap, topic, *rest = sys.argv[1:]
if mode == "produce":
    producer = kafka.KafkaProducer(bootstrap_servers=bootstrap)
    for line in sys.stdin:
        producer.send(topic, line.strip().encode()).get(60)
        print(line.strip(), flush=True)
    producer.close()
elif mode == "delete":
    administrator = kafka.KafkaAdminClient(bootstrap_servers=bootstrap)
    partition = kafka.TopicPartition(topic, 0)
    print(administrator.delete_records({partition: int(rest[0])})[partition]["low_watermark"])
    administrator.close()
else:
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=bootstrap, group_id=f"group-{topic}", auto_offset_reset="earliest"
    )
    consumer.subscribe([topic])
    for record in consumer:
        print(record.value.decode(), flush=True)
