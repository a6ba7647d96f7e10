"""The few znodes whose content the judge or a play reads: partition state, ISR change notification,
and a broker's registration.

Owns their paths and payloads in recordings. It deliberately does not use the emulator's own codec:
with the code under test, the judge would share its bugs.
"""

import re
from functools import lru_cache

import msgspec

NOTIFICATIONS = "/isr_change_notification/"
BROKER_IDS = "/brokers/ids/"
_REGISTRATION_PATH = re.compile(r"/brokers/ids/(\d{1,9})$")
_STATE_PATH = re.compile(r"/brokers/topics/([^/]+)/partitions/(\d+)/state$")


class StateZnode(msgspec.Struct, frozen=True, gc=False):
    """`/brokers/topics/<topic>/partitions/<partition>/state`."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    controller_epoch: int


class NamedPartition(msgspec.Struct, frozen=True, gc=False, order=True):
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class NotificationZnode(msgspec.Struct, frozen=True, gc=False):
    """`/isr_change_notification/isr_change_<sequence number>`."""

    partitions: tuple[NamedPartition, ...]


class RegistrationZnode(msgspec.Struct, frozen=True, gc=False):
    """`/brokers/ids/<broker>`. `port` is -1 without a PLAINTEXT endpoint."""

    port: int = -1


_STATE = msgspec.json.Decoder(StateZnode)
_NOTIFICATION = msgspec.json.Decoder(NotificationZnode)
_REGISTRATION = msgspec.json.Decoder(RegistrationZnode)


@lru_cache(maxsize=4096)
def partition_of_state(path: str) -> str | None:
    """`topic-partition` if `path` is a partition's state znode."""
    match = _STATE_PATH.match(path)
    return f"{match[1]}-{match[2]}" if match else None


def broker_of_registration(path: str) -> int | None:
    match = _REGISTRATION_PATH.match(path)
    return int(match[1]) if match else None


def decode_state(data: str) -> StateZnode:
    return _STATE.decode(data)


def decode_notification(data: str) -> NotificationZnode:
    return _NOTIFICATION.decode(data)


def decode_registration(data: str) -> RegistrationZnode:
    return _REGISTRATION.decode(data)


def complaint_about_payload(path: str, data: str) -> str | None:
    try:
        if partition_of_state(path):
            decode_state(data)
        elif path.startswith(NOTIFICATIONS):
            decode_notification(data)
        elif data and broker_of_registration(path) is not None:
            decode_registration(data)
    except msgspec.MsgspecError as error:
        return str(error)
    return None
