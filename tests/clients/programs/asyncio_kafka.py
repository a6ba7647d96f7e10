"""aiokafka, idempotent: `produce BOOTSTRAP TOPIC COUNT`, `consume BOOTSTRAP TOPIC`, or
`delete BOOTSTRAP TOPIC OFFSET`, which prints where the log starts then."""

import asyncio
import sys

import aiokafka
import aiokafka.admin


async def main(mode, bootstrap, topic, *rest):
    if mode == "produce":
        producer = aiokafka.AIOKafkaProducer(bootstrap_servers=bootstrap, enable_idempotence=True)
        await producer.start()
        for n in range(int(rest[0])):
            await producer.send_and_wait(topic, b"%d" % n)
            print(n, flush=True)
        await producer.stop()
    elif mode == "delete":
        administrator = aiokafka.admin.AIOKafkaAdminClient(bootstrap_servers=bootstrap)
        await administrator.start()
        partition = aiokafka.TopicPartition(topic, 0)
        before = aiokafka.admin.RecordsToDelete(int(rest[0]))
        print((await administrator.delete_records({partition: before}))[partition])
        await administrator.close()
    else:
        consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=bootstrap, group_id=f"group-{topic}", auto_offset_reset="earliest"
        )
        await consumer.start()
        consumer.subscribe([topic])
        async for record in consumer:
            print(record.value.decode(), flush=True)


asyncio.run(main(*sys.argv[1:]))
