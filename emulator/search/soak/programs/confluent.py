"""confluent-kafka's part of a history: `ROLE NAME BOOTSTRAP TOPIC PARTITIONS BEGAN_NS UNTIL_NS`.

Roles: `produce` sends records one after the other until UNTIL_NS of the machine's monotonic clock,
then waits for pending results; `tail` reads new records until then; `scan` repeatedly reads
everything from the start until then; `final` reads everything once. Writes a line for each
operation (emulator/search/soak/history.py). A separate program that imports nothing of the
emulator.
"""

import json
import logging
import re
import sys
import time
from contextlib import suppress
from typing import Any

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException, TopicPartition

PERIOD_S = 0.1
"""The interval between two records of a producer."""
FLUSH_S = 75
SCAN_EVERY_S = 20
DELIVERY_MS = 60_000
RETRY_S = 0.2
VALUE_BYTES = 400
"""A record's value is its name padded with blanks, so that logs grow fast enough to fill a disk."""


_NEW_EPOCH = re.compile(r"\[(\d+)\] changed (PID\S+) -> ")
role, name, bootstrap, topic, partitions, began_ns, until_ns = sys.argv[1:]
PARTITIONS, BEGAN_NS, UNTIL_S = int(partitions), int(began_ns), int(until_ns) / 1e9
SETTINGS = {
    "bootstrap.servers": bootstrap,
    "client.id": name,
    "log_level": 0,
    "reconnect.backoff.max.ms": 1000,
    "socket.timeout.ms": 10_000,
    # A broker that has just started may not know the topic yet; the default would retry only after
    # five minutes.
    "topic.metadata.refresh.interval.ms": 5_000,
}


def record_operation(op: str, **fields: object) -> None:
    at_us = (time.monotonic_ns() - BEGAN_NS) // 1000
    print(json.dumps({"at_us": at_us, "client": name, "op": op, **fields}), flush=True)


def partition_name(number: int) -> str:
    return f"{topic}-{number}"


class Idempotent:
    """An idempotent producer, replaced after a fatal error."""

    def __init__(self) -> None:
        self.fatal = ""
        self.producer = self._open()

    def _open(self) -> confluent_kafka.Producer:
        settings = {"enable.idempotence": True, "acks": "all", "message.timeout.ms": DELIVERY_MS}
        # Only the library's log shows when and why it takes a new epoch.
        logged = {"debug": "eos", "log_level": 7, "error_cb": self._note}
        logger = logging.getLogger(name)
        logger.setLevel(logging.DEBUG)
        logger.addFilter(self._log)
        return confluent_kafka.Producer(
            {**SETTINGS, **settings, **logged, "linger.ms": 5}, logger=logger
        )

    def _log(self, line: logging.LogRecord) -> bool:
        """A new epoch for a partition: records in flight are resent."""
        text = line.getMessage()
        match = _NEW_EPOCH.search(text)
        if match is not None and "Invalid" not in match[2]:
            record_operation("epoch", partition=partition_name(int(match[1])))
        print(text, file=sys.stderr)
        return False

    def _note(self, error: KafkaError) -> None:
        if error.fatal():
            self.fatal = error.name()

    def delivered(self, error: KafkaError | None, message: Any) -> None:
        about = {"partition": partition_name(message.partition()), "record": message.key().decode()}
        if error is None:
            # A batch that the broker already had may be acknowledged without its offset.
            offset = -1 if message.offset() is None else message.offset()
            record_operation("acknowledged", offset=offset, **about)
        else:
            record_operation("failed", error=error.name(), **about)
            if error.code() == KafkaError._FATAL:
                self.fatal = self.fatal or error.name()

    def send(self, number: int) -> None:
        record, partition = f"{name}.{number}", number % PARTITIONS
        about = {"partition": partition_name(partition), "record": record}
        record_operation("send", **about)
        try:
            value = record.ljust(VALUE_BYTES)
            self.producer.produce(topic, value, record, partition, self.delivered)
        except (BufferError, KafkaException) as error:
            record_operation("failed", error=str(error), **about)
            code = error.args[0].code() if isinstance(error, KafkaException) else None
            if code == KafkaError._FATAL:
                self.fatal = self.fatal or "_FATAL"
        if self.fatal:
            self._begin_again()

    def _begin_again(self) -> None:
        record_operation("fatal", error=self.fatal)
        with suppress(KafkaException, SystemError):  # it repeats its fatal error
            self.producer.purge()
            self.producer.flush(5)
        self.fatal, self.producer = "", self._open()

    def wait(self, wait_s: float) -> None:
        """Process deliveries; fatal errors of the library are raised here (as a SystemError if a
        callback runs while it raises)."""
        try:
            self.producer.poll(wait_s)
        except (KafkaException, SystemError) as error:
            self.fatal = str(error)
            self._begin_again()

    def finish(self) -> None:
        """Wait until all deliveries have arrived or no more do."""
        with suppress(KafkaException, SystemError):
            self.producer.flush(FLUSH_S)


def produce() -> None:
    client, number = Idempotent(), 0
    next_s = time.monotonic()
    while (now_s := time.monotonic()) < UNTIL_S:
        if now_s < next_s:
            client.wait(next_s - now_s)
            continue
        next_s = max(next_s + PERIOD_S, now_s - 1)
        client.send(number)
        number += 1
    client.finish()


def open_consumer() -> confluent_kafka.Consumer:
    settings = {"group.id": name, "enable.auto.commit": False, "auto.offset.reset": "error"}
    return confluent_kafka.Consumer({**SETTINGS, **settings, "fetch.wait.max.ms": 500})


class Scan:
    """Reads partitions from given offsets on; consecutive records become one operation."""

    def __init__(self, consumer: confluent_kafka.Consumer, number: int) -> None:
        self.consumer, self.number = consumer, number
        self.next: dict[int, int] = {}

    def begin(self, partition: int, offset: int) -> None:
        self.next[partition] = offset

    def read(self, timeout_s: float) -> list[KafkaError]:
        messages = self.consumer.consume(500, timeout_s)
        failures = [one.error() for one in messages]
        for partition in self.next:
            run: list[Any] = []
            for one in messages:
                if one.error() is not None or one.partition() != partition:
                    continue
                if run and one.offset() != run[-1].offset() + 1:
                    self._record(partition, run)
                    run = []
                run.append(one)
            if run:
                self._record(partition, run)
        return [one for one in failures if one is not None]

    def _record(self, partition: int, run: list[Any]) -> None:
        records = [one.value().decode(errors="replace").rstrip() for one in run]
        about = {"partition": partition_name(partition), "scan": self.number}
        record_operation("read", offset=run[0].offset(), records=records, **about)
        self.next[partition] = run[-1].offset() + 1


def watermarks(consumer: confluent_kafka.Consumer) -> dict[int, tuple[int, int]]:
    """The log's start and end of each partition, retried until a broker responds."""
    known: dict[int, tuple[int, int]] = {}
    while len(known) < PARTITIONS:
        for number in range(PARTITIONS):
            if number not in known and time.monotonic() < UNTIL_S:
                try:
                    known[number] = consumer.get_watermark_offsets(
                        TopicPartition(topic, number), timeout=5
                    )
                except KafkaException:
                    # Without a leader it fails at once, and each try keeps some of the library's
                    # memory: a client that tried without a break took 11 GB in 20 minutes.
                    time.sleep(RETRY_S)
        if time.monotonic() >= UNTIL_S:
            break
    return known


def scan_once(number: int, *, final: bool) -> bool:
    consumer = open_consumer()
    known = watermarks(consumer)
    scan = Scan(consumer, number)
    starts = [TopicPartition(topic, one, low) for one, (low, _) in known.items()]
    for one, (low, _) in known.items():
        scan.begin(one, low)
    consumer.assign(starts)
    lacking = {one: high for one, (_, high) in known.items()}
    while lacking and time.monotonic() < UNTIL_S:
        failures = scan.read(1)
        for one in [one for one, high in lacking.items() if scan.next[one] >= high]:
            del lacking[one]
            if final:
                low = known[one][0]
                about = {"partition": partition_name(one), "scan": number}
                record_operation("end", offset=low, until=scan.next[one], **about)
        if any(one.code() == KafkaError._AUTO_OFFSET_RESET for one in failures):
            break  # a log became shorter: the next scan reads its current content
    consumer.close()
    return len(known) == PARTITIONS and not lacking


def tail() -> None:
    number = 0
    while time.monotonic() < UNTIL_S:
        consumer = open_consumer()
        scan = Scan(consumer, number)
        known = watermarks(consumer)
        for one, (low, high) in known.items():
            # First from the start; after a log became shorter, from its end.
            scan.begin(one, high if number else low)
        consumer.assign([TopicPartition(topic, one, at) for one, at in scan.next.items()])
        while time.monotonic() < UNTIL_S:
            failures = scan.read(0.5)
            if any(one.code() == KafkaError._AUTO_OFFSET_RESET for one in failures):
                break
        consumer.close()
        number += 1


def scan() -> None:
    number = 0
    while time.monotonic() < UNTIL_S:
        next_s = time.monotonic() + SCAN_EVERY_S
        scan_once(number, final=False)
        number += 1
        time.sleep(max(0, min(next_s, UNTIL_S) - time.monotonic()))


def final() -> None:
    number = 0
    while not scan_once(number, final=True):
        number += 1
        if time.monotonic() >= UNTIL_S:
            sys.exit("not everything could be read")


{"produce": produce, "tail": tail, "scan": scan, "final": final}[role]()
