"""aiokafka, idempotent.

`produce BOOTSTRAP TOPIC` sends each line of its input and prints it when it is acknowledged;
`consume BOOTSTRAP TOPIC`; `delete BOOTSTRAP TOPIC OFFSET` prints where the log starts then.
"""

import asyncio
import sys

import aiokafka
import aiokafka.admin


async def main(mode, bootstrap, topic, *rest):
    if mode == "produce":
        producer = aiokafka.AIOKafkaProducer(bootstrap_servers=bootstrap, enable_idempotence=True)
        await producer.start()
        while line := await asyncio.to_thread(sys.stdin.readline):
            await producer.send_and_wait(topic, line.strip().encode())
            print(line.strip(), flush=True)
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
