"""Sentences of `state-change.log`: control requests at a broker, state machines at the controller.

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


def _partition(match: re.Match[str]) -> TopicPartition:
    return parse_partition(match["partition"])


# -- LeaderAndIsr at a broker ---------------------------------------------------------------------


@sentence(
    LOGGER,
    rf"[Rr]eceived LeaderAndIsr request (?P<state>.*) {_FROM}"
    r"(?: for partition (?P<partition>\S+))?$",
)
def _leader_and_isr(account: Account, match: re.Match[str]) -> None:
    state = parse_state(
        match["state"], parse_partition(match["partition"]) if match["partition"] else None
    )
    partition, epoch = state.partition, int(match["epoch"] or -1)
    about = account.of(partition)
    about.requested = state
    account.controller_epoch = max(account.controller_epoch, epoch)
    account.emit(e.LeaderAndIsr, sender=int(match["from"]), sender_epoch=epoch, state=state)
    key = _sent_state("LeaderAndIsr", int(match["from"]), account.broker, state)
    account.causes.arrived(key, account.clock, account.at_ms)
    _answers(account, "LEADER_AND_ISR", match)
    _record_state(account, state)


def _sent_state(request: str, sender: int, to: int, state: PartitionState) -> tuple[object, ...]:
    """A new controller sends the same states again."""
    version = state.leader_epoch, state.zk_version, state.controller_epoch, state.is_new
    return (request, sender, to, state.partition, *version)


def _answers(account: Account, request: str, match: re.Match[str]) -> None:
    """The response is sent after this line; there is one per request, whatever its number of
    partitions."""
    key = ("answer", request, int(match["from"]), account.broker, int(match["id"]))
    account.causes.answered(key, account.clock, account.at_ms)


def _record_state(account: Account, state: PartitionState) -> None:
    if state.zk_version >= 0:
        key = ("state", state.partition, state.zk_version)
        account.causes.seen(key, account.clock, account.at_ms)


@sentence(
    LOGGER,
    r"[Ii]gnoring LeaderAndIsr request from controller (?P<from>\d+) with correlation id \d+"
    r" epoch (?P<epoch>\d+) for partition (?P<partition>\S+) (?:since|as) (?P<why>.*)",
)
def _leader_and_isr_ignored(account: Account, match: re.Match[str]) -> None:
    partition = _partition(match)
    state = account.of(partition).requested
    if state is None:
        raise ValueError("ignored without having been received")
    assert state.partition == partition
    stale = "leader epoch" in match["why"]
    account.emit(
        e.LeaderAndIsrIgnored,
        sender=int(match["from"]),
        sender_epoch=int(match["epoch"]),
        state=state,
        error="STALE_LEADER_EPOCH" if stale else "UNKNOWN_TOPIC_OR_PARTITION",
    )


@sentence(
    LOGGER,
    r"[Ii]gnoring (?P<request>LeaderAndIsr|StopReplica|UpdateMetadata) request from controller"
    r" (?P<from>\d+) with correlation id \d+ since its controller epoch (?P<epoch>\d+) is old",
)
def _refused(account: Account, match: re.Match[str]) -> None:
    account.emit(
        e.ControlRequestRefused,
        request=match["request"],
        sender=int(match["from"]),
        sender_epoch=int(match["epoch"]),
        error="STALE_CONTROLLER_EPOCH",
    )


@sentence(
    LOGGER,
    r"(?P<role>Leader|Follower) (?P<partition>\S+) (?:with topic id \S+ )?starts at leader epoch"
    r" (?P<epoch>\d+) from offset (?P<leo>\d+) with (?:partition epoch \d+(?:,| and) )?high"
    r" watermark (?P<hw>\d+)",
)
def _becomes(account: Account, match: re.Match[str]) -> None:
    about = account.of(_partition(match))
    about.leo = int(match["leo"])
    _take_role(account, match, int(match["epoch"]), about.leo, int(match["hw"]))


@sentence(
    LOGGER,
    r"[Cc]ompleted LeaderAndIsr request .*become-(?P<role>leader|follower) transition for"
    r" partition (?P<partition>[^\s,]+(?:,\d+\])?)",
)
def _completed(account: Account, match: re.Match[str]) -> None:
    """Up to 2.5 offsets are not logged: -1."""
    about = account.of(_partition(match))
    state = about.requested
    if state is not None and about.leader_epoch != state.leader_epoch:
        _take_role(account, match, state.leader_epoch, -1, -1)


def _take_role(account: Account, match: re.Match[str], epoch: int, leo: int, hw: int) -> None:
    partition = _partition(match)
    about = account.of(partition)
    state = about.requested
    if state is not None:
        about.zk_version, about.isr = state.zk_version, state.isr
    about.leader_epoch, about.hw_rose_from = epoch, -1
    about.leads = match["role"].lower() == "leader"
    if about.leads:
        account.emit(e.BecomesLeader, partition=partition, leader_epoch=epoch, leo=leo, hw=hw)
    else:
        account.emit(
            e.BecomesFollower,
            partition=partition,
            leader=state.leader if state else -1,
            leader_epoch=epoch,
            leo=leo,
            hw=hw,
        )


# -- UpdateMetadata at a broker --------------------------------------------------------------------


def _request(match: re.Match[str]) -> tuple[int, int, int]:
    return int(match["from"]), int(match["epoch"]), int(match["id"])


@sentence(
    LOGGER,
    rf"[Cc]ached leader info (?P<state>.*) for partition (?P<partition>\S+) in response to"
    rf" UpdateMetadata request {_BY}",
)
def _cached(account: Account, match: re.Match[str]) -> None:
    state = parse_state(match["state"], _partition(match))
    account.cached(_request(match), state)
    _answers(account, "UPDATE_METADATA", match)
    _record_state(account, state)


@sentence(
    LOGGER,
    rf"[Dd]eleted partition (?P<partition>\S+) from metadata cache in response to UpdateMetadata"
    rf" request {_BY}",
)
def _removed(account: Account, match: re.Match[str]) -> None:
    account.removed(_request(match), _partition(match))
    _answers(account, "UPDATE_METADATA", match)


@sentence(LOGGER, rf"Add \d+ partitions and deleted \d+ partitions from metadata cache .*{_BY}")
def _end_of_metadata(account: Account, match: re.Match[str]) -> None:
    account.end_of_metadata()


# -- StopReplica at a broker -----------------------------------------------------------------------


@sentence(
    LOGGER,
    rf"Received StopReplica request (?P<state>.*) {_FROM} for partition (?P<partition>\S+)",
)
def _stop_replica(account: Account, match: re.Match[str]) -> None:
    named = fields(match["state"])
    account.emit(
        e.StopReplica,
        sender=int(match["from"]),
        sender_epoch=int(match["epoch"] or -1),
        partition=_partition(match),
        leader_epoch=int(named.get("leaderepoch", -1)),
        delete=named.get("deletepartition") == "true",
    )
    _answers(account, "STOP_REPLICA", match)


@sentence(
    LOGGER,
    r"(?<![Ff]inished )[Hh]andling stop replica \(delete=(?P<delete>\w+)\) for partition"
    r" (?P<partition>\S+)",
)
def _stop_replica_before_2_6(account: Account, match: re.Match[str]) -> None:
    account.emit(
        e.StopReplica,
        sender=-1,
        sender_epoch=-1,
        partition=_partition(match),
        leader_epoch=-1,
        delete=match["delete"] == "true",
    )


@sentence(
    LOGGER,
    r"Ignoring StopReplica request \(delete=(?P<delete>\w+)\) from controller (?P<from>\d+) with"
    r" correlation id \d+ epoch (?P<epoch>\d+) for partition (?P<partition>\S+)"
    r"(?:.*leader epoch (?P<leader_epoch>-?\d+))?",
)
def _stop_replica_ignored(account: Account, match: re.Match[str]) -> None:
    account.emit(
        e.StopReplicaIgnored,
        sender=int(match["from"]),
        sender_epoch=int(match["epoch"]),
        partition=_partition(match),
        leader_epoch=int(match["leader_epoch"] or -1),
        delete=match["delete"] == "true",
        error="FENCED_LEADER_EPOCH",
    )


# -- the controller --------------------------------------------------------------------------------

_IN_CAPITALS = {
    "LeaderAndIsr": "LEADER_AND_ISR",
    "UpdateMetadata": "UPDATE_METADATA",
    "StopReplica": "STOP_REPLICA",
}
"""0.8.2 uses these names for responses, later versions for requests."""
_CONTROLLER = r"\[?Controller (?:id=)?\d+ epoch[= ](?P<controller_epoch>\d+)\]?:? "


@sentence(
    LOGGER,
    _CONTROLLER + r"[Cc]hanged partition (?P<partition>\S+)(?: state)? from (?P<old>\w+) to"
    r" (?P<new>\w+)(?: with (?:state|leader \d+|assigned replicas)\b(?P<state>.*))?",
)
def _partition_state(account: Account, match: re.Match[str]) -> None:
    partition = _partition(match)
    account.emit(
        e.PartitionStateChanged,
        controller_epoch=int(match["controller_epoch"]),
        partition=partition,
        from_state=match["old"],
        to_state=match["new"],
    )
    if match["state"] and "LeaderAndIsr(" in match["state"]:
        state = parse_state(
            match["state"].partition("LeaderAndIsr(")[2].removesuffix(")"), partition
        )
        _record_state(account, state)
        if state.zk_version >= 0:
            account.emit(
                e.ControllerCacheUpdated,
                partition=partition,
                leader=state.leader,
                leader_epoch=state.leader_epoch,
                isr=state.isr,
                zk_version=state.zk_version,
                why="creation" if match["old"] == "NewPartition" else "election",
                controller_epoch=int(match["controller_epoch"]),
            )


@sentence(
    LOGGER,
    _CONTROLLER + r"[Cc]hanged state of replica (?P<replica>\d+) for partition (?P<partition>\S+)"
    r" from (?P<old>\w+) to (?P<new>\w+)",
)
def _replica_state(account: Account, match: re.Match[str]) -> None:
    account.emit(
        e.ReplicaStateChanged,
        controller_epoch=int(match["controller_epoch"]),
        partition=_partition(match),
        replica=int(match["replica"]),
        from_state=match["old"],
        to_state=match["new"],
    )


@sentence(
    LOGGER,
    _CONTROLLER + r"[Ss]ending become-(?:leader|follower) LeaderAndIsr request (?P<state>.*?)"
    r"(?: with correlationId \d+)? to broker (?P<to>\d+) for partition (?P<partition>\S+)",
)
def _sending_leader_and_isr(account: Account, match: re.Match[str]) -> None:
    state = parse_state(match["state"], _partition(match))
    key = _sent_state("LeaderAndIsr", account.broker, int(match["to"]), state)
    account.causes.sent(key, account.clock, account.at_ms)
    _record_state(account, state)


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
def _answer(account: Account, match: re.Match[str]) -> None:
    request, to, number = match["request"], int(match["to"]), int(match["id"])
    key = ("answer", _IN_CAPITALS.get(request, request), account.broker, to, number)
    account.causes.arrived(key, account.clock, account.at_ms)


@sentence(
    LOGGER,
    r"Partition (?P<partition>\S+) state changed to \((?P<state>[^)]*)\) after removing replica",
)
def _removed_from_isr(account: Account, match: re.Match[str]) -> None:
    """ZooKeeper's log has the write, if there is one."""
    _partition(match)
    numbers(match["state"])


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
