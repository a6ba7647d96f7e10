"""aiokafka, idempotent: `produce BOOTSTRAP TOPIC COUNT` or `consume BOOTSTRAP TOPIC`."""

import asyncio
import sys

import aiokafka


async def main(mode, bootstrap, topic, *rest):
    if mode == "produce":
        producer = aiokafka.AIOKafkaProducer(bootstrap_servers=bootstrap, enable_idempotence=True)
        await producer.start()
        for n in range(int(rest[0])):
            await producer.send_and_wait(topic, b"%d" % n)
            print(n, flush=True)
        await producer.stop()
    else:
        consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=bootstrap, group_id=f"group-{topic}", auto_offset_reset="earliest"
        )
        await consumer.start()
        consumer.subscribe([topic])
        async for record in consumer:
            print(record.value.decode(), flush=True)


asyncio.run(main(*sys.argv[1:]))
