"""What `state-change.log` says: control requests at a broker, state machines at the controller.

One function per sentence, in the spellings of 0.8.2 to 3.9 (StateChangeLogger.scala,
ReplicaManager.scala, KafkaController.scala). It must not know clocks or other brokers' logs.
"""

from __future__ import annotations

import re

from emulator.forensics.account import Account, known, sentence
from emulator.forensics.log_fields import fields, numbers, parse_partition, parse_state
from emulator.trace import events as e
from emulator.trace.values import PartitionState, TopicPartition

LOGGER = "state.change.logger"
_FROM = (
    r"correlation ?[iI]d (?P<id>\d+) (?:sent )?from controller (?P<from>\d+)"
    r"(?: epoch (?P<epoch>\d+))?"
)
_BY = r"sent by controller (?P<from>\d+) epoch (?P<epoch>\d+) with correlation id (?P<id>\d+)"


def _partition(found: re.Match[str]) -> TopicPartition:
    return parse_partition(found["partition"])


# -- LeaderAndIsr at a broker ---------------------------------------------------------------------


@sentence(
    LOGGER,
    rf"[Rr]eceived LeaderAndIsr request (?P<state>.*) {_FROM}"
    r"(?: for partition (?P<partition>\S+))?$",
)
def _leader_and_isr(account: Account, found: re.Match[str]) -> None:
    told = parse_state(
        found["state"], parse_partition(found["partition"]) if found["partition"] else None
    )
    partition, epoch = told.partition, int(found["epoch"] or -1)
    about = account.of(partition)
    about.told = told
    account.controller_epoch = max(account.controller_epoch, epoch)
    account.emit(e.LeaderAndIsr, sender=int(found["from"]), sender_epoch=epoch, state=told)
    key = _sent_state("LeaderAndIsr", int(found["from"]), account.broker, told)
    account.causes.arrived(key, account.clock, account.at_ms)
    _answers(account, "LEADER_AND_ISR", found)
    _saw(account, told)


def _sent_state(request: str, sender: int, to: int, told: PartitionState) -> tuple[object, ...]:
    """A new controller sends what the last one has sent already."""
    version = told.leader_epoch, told.zk_version, told.controller_epoch, told.is_new
    return (request, sender, to, told.partition, *version)


def _answers(account: Account, request: str, found: re.Match[str]) -> None:
    """The answer leaves after this line; one per request, however many partitions it has."""
    key = ("answer", request, int(found["from"]), account.broker, int(found["id"]))
    account.causes.answered(key, account.clock, account.at_ms)


def _saw(account: Account, told: PartitionState) -> None:
    if told.zk_version >= 0:
        key = ("state", told.partition, told.zk_version)
        account.causes.seen(key, account.clock, account.at_ms)


@sentence(
    LOGGER,
    r"[Ii]gnoring LeaderAndIsr request from controller (?P<from>\d+) with correlation id \d+"
    r" epoch (?P<epoch>\d+) for partition (?P<partition>\S+) since (?P<why>.*)",
)
def _leader_and_isr_ignored(account: Account, found: re.Match[str]) -> None:
    partition = _partition(found)
    told = account.of(partition).told
    assert told is None or told.partition == partition
    if told is None:
        raise ValueError("ignored without having been received")
    stale = "leader epoch" in found["why"]
    account.emit(
        e.LeaderAndIsrIgnored,
        sender=int(found["from"]),
        sender_epoch=int(found["epoch"]),
        state=told,
        error="STALE_LEADER_EPOCH" if stale else "UNKNOWN_TOPIC_OR_PARTITION",
    )


@sentence(
    LOGGER,
    r"[Ii]gnoring (?P<request>LeaderAndIsr|StopReplica|UpdateMetadata) request from controller"
    r" (?P<from>\d+) with correlation id \d+ since its controller epoch (?P<epoch>\d+) is old",
)
def _refused(account: Account, found: re.Match[str]) -> None:
    account.emit(
        e.ControlRequestRefused,
        request=found["request"],
        sender=int(found["from"]),
        sender_epoch=int(found["epoch"]),
        error="STALE_CONTROLLER_EPOCH",
    )


@sentence(
    LOGGER,
    r"(?P<role>Leader|Follower) (?P<partition>\S+) (?:with topic id \S+ )?starts at leader epoch"
    r" (?P<epoch>\d+) from offset (?P<leo>\d+) with (?:partition epoch \d+(?:,| and) )?high"
    r" watermark (?P<hw>\d+)",
)
def _becomes(account: Account, found: re.Match[str]) -> None:
    partition = _partition(found)
    about = account.of(partition)
    told = about.told
    epoch, leo, hw = int(found["epoch"]), int(found["leo"]), int(found["hw"])
    if told is not None:
        about.zk_version, about.isr = told.zk_version, told.isr
    about.leader_epoch, about.leo = epoch, leo
    about.leads, about.hw_rose_from = found["role"] == "Leader", -1
    shared = {"partition": partition, "leader_epoch": epoch, "leo": leo, "hw": hw}
    if about.leads:
        account.emit(e.BecomesLeader, **shared)
    else:
        account.emit(e.BecomesFollower, leader=told.leader if told else -1, **shared)


@sentence(
    LOGGER,
    r"[Cc]ompleted LeaderAndIsr request .*become-(?P<role>leader|follower) transition for"
    r" partition (?P<partition>[^\s,]+(?:,\d+\])?)",
)
def _completed(account: Account, found: re.Match[str]) -> None:
    """Up to 2.5 nothing more is said: offsets are unknown, -1."""
    partition = _partition(found)
    about = account.of(partition)
    told = about.told
    if told is None or about.leader_epoch == told.leader_epoch:
        return
    about.leader_epoch, about.zk_version, about.isr = told.leader_epoch, told.zk_version, told.isr
    about.leads, about.hw_rose_from = found["role"] == "leader", -1
    shared = {"partition": partition, "leader_epoch": told.leader_epoch, "leo": -1, "hw": -1}
    if about.leads:
        account.emit(e.BecomesLeader, **shared)
    else:
        account.emit(e.BecomesFollower, leader=told.leader, **shared)


# -- UpdateMetadata at a broker --------------------------------------------------------------------


def _request(found: re.Match[str]) -> tuple[int, int, int]:
    return int(found["from"]), int(found["epoch"]), int(found["id"])


@sentence(
    LOGGER,
    rf"[Cc]ached leader info (?P<state>.*) for partition (?P<partition>\S+) in response to"
    rf" UpdateMetadata request {_BY}",
)
def _cached(account: Account, found: re.Match[str]) -> None:
    told = parse_state(found["state"], _partition(found))
    account.cached(_request(found), told)
    _answers(account, "UPDATE_METADATA", found)
    _saw(account, told)


@sentence(
    LOGGER,
    rf"[Dd]eleted partition (?P<partition>\S+) from metadata cache in response to UpdateMetadata"
    rf" request {_BY}",
)
def _removed(account: Account, found: re.Match[str]) -> None:
    account.removed(_request(found), _partition(found))
    _answers(account, "UPDATE_METADATA", found)


@sentence(LOGGER, rf"Add \d+ partitions and deleted \d+ partitions from metadata cache .*{_BY}")
def _end_of_metadata(account: Account, found: re.Match[str]) -> None:
    account.end_of_metadata()


# -- StopReplica at a broker -----------------------------------------------------------------------


@sentence(
    LOGGER,
    rf"Received StopReplica request (?P<state>.*) {_FROM} for partition (?P<partition>\S+)",
)
def _stop_replica(account: Account, found: re.Match[str]) -> None:
    said = fields(found["state"])
    account.emit(
        e.StopReplica,
        sender=int(found["from"]),
        sender_epoch=int(found["epoch"] or -1),
        partition=_partition(found),
        leader_epoch=int(said.get("leaderepoch", -1)),
        delete=said.get("deletepartition") == "true",
    )
    _answers(account, "STOP_REPLICA", found)


@sentence(
    LOGGER,
    r"[Hh]andling stop replica \(delete=(?P<delete>\w+)\) for partition (?P<partition>\S+)",
)
def _stop_replica_before_2_6(account: Account, found: re.Match[str]) -> None:
    account.emit(
        e.StopReplica,
        sender=-1,
        sender_epoch=-1,
        partition=_partition(found),
        leader_epoch=-1,
        delete=found["delete"] == "true",
    )


@sentence(
    LOGGER,
    r"Ignoring StopReplica request \(delete=(?P<delete>\w+)\) from controller (?P<from>\d+) with"
    r" correlation id \d+ epoch (?P<epoch>\d+) for partition (?P<partition>\S+)"
    r"(?:.*leader epoch (?P<leader_epoch>-?\d+))?",
)
def _stop_replica_ignored(account: Account, found: re.Match[str]) -> None:
    account.emit(
        e.StopReplicaIgnored,
        sender=int(found["from"]),
        sender_epoch=int(found["epoch"]),
        partition=_partition(found),
        leader_epoch=int(found["leader_epoch"] or -1),
        delete=found["delete"] == "true",
        error="FENCED_LEADER_EPOCH",
    )


# -- the controller --------------------------------------------------------------------------------

_IN_CAPITALS = {
    "LeaderAndIsr": "LEADER_AND_ISR",
    "UpdateMetadata": "UPDATE_METADATA",
    "StopReplica": "STOP_REPLICA",
}
"""As 0.8.2 names the responses, and every later version the requests."""
_CONTROLLER = r"\[?Controller (?:id=)?\d+ epoch[= ](?P<controller_epoch>\d+)\]?:? "


@sentence(
    LOGGER,
    _CONTROLLER + r"[Cc]hanged partition (?P<partition>\S+)(?: state)? from (?P<old>\w+) to"
    r" (?P<new>\w+)(?: with (?:state|leader \d+|assigned replicas)\b(?P<state>.*))?",
)
def _partition_state(account: Account, found: re.Match[str]) -> None:
    partition = _partition(found)
    account.emit(
        e.PartitionStateChanged,
        controller_epoch=int(found["controller_epoch"]),
        partition=partition,
        from_state=found["old"],
        to_state=found["new"],
    )
    if found["state"] and "LeaderAndIsr(" in found["state"]:
        told = parse_state(
            found["state"].partition("LeaderAndIsr(")[2].removesuffix(")"), partition
        )
        _saw(account, told)
        _cached_by_controller(account, told, found["old"], int(found["controller_epoch"]))


def _cached_by_controller(
    account: Account, told: PartitionState, old: str, controller_epoch: int
) -> None:
    if told.zk_version >= 0:
        account.emit(
            e.ControllerCacheUpdated,
            partition=told.partition,
            leader=told.leader,
            leader_epoch=told.leader_epoch,
            isr=told.isr,
            zk_version=told.zk_version,
            why="creation" if old == "NewPartition" else "election",
            controller_epoch=controller_epoch,
        )


@sentence(
    LOGGER,
    _CONTROLLER + r"[Cc]hanged state of replica (?P<replica>\d+) for partition (?P<partition>\S+)"
    r" from (?P<old>\w+) to (?P<new>\w+)",
)
def _replica_state(account: Account, found: re.Match[str]) -> None:
    account.emit(
        e.ReplicaStateChanged,
        controller_epoch=int(found["controller_epoch"]),
        partition=_partition(found),
        replica=int(found["replica"]),
        from_state=found["old"],
        to_state=found["new"],
    )


@sentence(
    LOGGER,
    _CONTROLLER + r"[Ss]ending become-(?:leader|follower) LeaderAndIsr request (?P<state>.*?)"
    r"(?: with correlationId \d+)? to broker (?P<to>\d+) for partition (?P<partition>\S+)",
)
def _sending_leader_and_isr(account: Account, found: re.Match[str]) -> None:
    told = parse_state(found["state"], _partition(found))
    key = _sent_state("LeaderAndIsr", account.broker, int(found["to"]), told)
    account.causes.sent(key, account.clock, account.at_ms)
    _saw(account, told)


@sentence(
    LOGGER,
    _CONTROLLER + r"[Rr]eceived response .* for (?:a )?request (?P<request>[A-Z_]+) with"
    r" correlation id (?P<id>\d+) sent to broker .*\(id: (?P<to>\d+)",
)
@sentence(
    LOGGER,
    _CONTROLLER + r"received response (?P<request>LeaderAndIsr|UpdateMetadata|StopReplica)Response"
    r"\((?P<id>\d+),.* sent to broker id:(?P<to>\d+)",
)
def _answer(account: Account, found: re.Match[str]) -> None:
    request, to, number = found["request"], int(found["to"]), int(found["id"])
    key = ("answer", _IN_CAPITALS.get(request, request), account.broker, to, number)
    account.causes.arrived(key, account.clock, account.at_ms)


@sentence(
    LOGGER,
    r"Partition (?P<partition>\S+) state changed to \((?P<state>[^)]*)\) after removing replica",
)
def _removed_from_isr(account: Account, found: re.Match[str]) -> None:
    """The write is in ZooKeeper's log, where there is one."""
    _partition(found)
    numbers(found["state"])


known(
    LOGGER,
    r"[Hh]andling LeaderAndIsr request",
    r"[Hh]andling StopReplica request",
    r"[Hh]andling UpdateMetadata request",
    r"[Ss]topped fetchers as part of",
    r"[Ss]tarted fetcher to new leader",
    r"[Ss]tarted \d+ new fetchers? ",
    r"[Tt]runcated logs and checkpointed",
    r"[Ss]kipped the (become-(leader|follower) state change|adding-fetcher step)",
    r"[Rr]eceived LeaderAndIsrRequest .* but cannot become follower",
    r"failed to change state for partition",
    r"[Ss]ending (LeaderAndIsr|UpdateMetadata|StopReplica|become-|stop replica)",
    r"[Ss]ent LeaderAndIsr request .* with new replica assignment",
    r"[Rr]eceived response ",
    r"[Cc]ompleted (StopReplica|LeaderAndIsr|UpdateMetadata)",
    r"[Hh]andling LeaderAndIsr .*transition",
    r"[Cc]ontroller sent LeaderAndIsr",
    r"([Ss]tarted leader election|[Ee]lected leader \d+) for ",
    r"[Ff]inished (handling StopReplica|LeaderAndIsr request)",
)
