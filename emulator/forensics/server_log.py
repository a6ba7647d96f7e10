"""Sentences of `server.log`: the broker's process, its ZooKeeper session, ISR decisions of leaders,
fetchers and truncation.

One function per sentence, in the spellings of 0.8.2 to 3.9 (Partition.scala, KafkaServer.scala,
ZooKeeperClient.scala). It must not know clocks or other brokers' logs.
"""

from __future__ import annotations

import re

import msgspec

from emulator.forensics.account import Account, known, left_out, sentence
from emulator.forensics.clocks import ZOOKEEPER
from emulator.forensics.log_fields import numbers, parse_partition, parse_state
from emulator.kafka.profiles.base import profile_of
from emulator.trace import events as e
from emulator.trace.values import Lagging, TopicPartition

PARTITION = "kafka.cluster.Partition"
SERVER = "kafka.server.KafkaServer"
_HEAD = r"^(?:\[Partition (?P<new>\S+) broker=\d+\]|Partition (?P<old>\[\S+\]) on broker \d+:) "
_PENDING = r"(?P<pending>Pending(?P<change>Expand|Shrink)Isr)"
_JOINS = re.compile(r"newInSyncReplicaId=(\d+)")
_OUT = re.compile(r"brokerId: (\d+), endOffset: (-?\d+)")


def _partition(match: re.Match[str]) -> TopicPartition:
    return parse_partition(match["new"] or match["old"])


# -- the leader's ISR ------------------------------------------------------------------------------


@sentence(
    PARTITION,
    _HEAD + r"(?P<change>Shrinking|Expanding) ISR (?:for partition \S+ )?from (?P<from>[\d,]*) to"
    r" (?P<to>[\d,]*)(?:\. Leader: \(highWatermark: (?P<hw>\d+), endOffset: (?P<leo>\d+)\)\."
    r"(?P<out>.*))?",
)
def _decided(account: Account, match: re.Match[str]) -> None:
    partition = _partition(match)
    about = account.of(partition)
    about.change = "shrink" if match["change"] == "Shrinking" else "expand"
    about.decided_ms = account.at_ms
    to_isr = numbers(match["to"])
    out = _OUT.findall(match["out"] or "")
    account.emit(
        e.IsrUpdateStarted,
        partition=partition,
        change=about.change,
        from_isr=numbers(match["from"]),
        to_isr=to_isr,
        hw=int(match["hw"] or -1),
        leo=int(match["leo"] or -1),
        leader_epoch=about.leader_epoch,
        zk_version=about.zk_version,
        out_of_sync=tuple(Lagging(int(broker), int(leo), -1) for broker, leo in out),
    )


@sentence(
    PARTITION,
    _HEAD + r"ISR updated (?:from AlterIsr |from AlterPartition )?to \[?(?P<isr>[\d,]*)\]?"
    r"(?: +and (?:zkVersion|version) updated to \[?(?P<version>\d+)\]?)?",
)
def _updated(account: Account, match: re.Match[str]) -> None:
    partition = _partition(match)
    about = account.of(partition)
    about.isr = numbers(match["isr"])
    about.zk_version = int(match["version"] or -1)
    account.emit(
        e.IsrUpdated,
        partition=partition,
        change=about.change or "expand",
        isr=about.isr,
        zk_version=about.zk_version,
        leader_epoch=about.leader_epoch,
    )
    key = ("state", partition, about.zk_version)
    account.causes.seen(key, account.clock, account.at_ms)
    if about.decided_ms:
        decided = ("decided", account.broker, partition, about.zk_version)
        account.causes.sent(decided, account.clock, about.decided_ms)
        about.decided_ms = 0


@sentence(
    PARTITION,
    _HEAD + r"High ?[Ww]atermark (?:for partition \S+ )?updated"
    r" (?:from \(offset=(?P<from>\d+).* )?to (?:\(offset=)?(?P<hw>\d+)",
)
def _hw(account: Account, match: re.Match[str]) -> None:
    """A DEBUG line of the leader, whose log reaches at least this far. Threads write it after they
    release the lock, so a line may be late: one that ends where the last one began has nothing
    new."""
    hw, about = int(match["hw"]), account.of(_partition(match))
    late = hw == about.hw_rose_from
    about.hw_rose_from = int(match["from"] or -1)
    if not late:
        account.emit(e.HwAdvanced, partition=_partition(match), role="leader", hw=hw, leo=hw)


@sentence(PARTITION, _HEAD + r"Cached zkVersion \[?(?P<version>-?\d+)\]? not equal to that in")
def _rejected(account: Account, match: re.Match[str]) -> None:
    partition = _partition(match)
    about = account.of(partition)
    about.decided_ms = 0
    account.emit(
        e.IsrUpdateRejected,
        partition=partition,
        change=about.change or "shrink",
        cached_zk_version=int(match["version"]),
    )


@sentence(
    PARTITION,
    _HEAD + r"(?:Sent|Enqueued) .*?LeaderAndIsr\((?P<state>.*?)\) after .*?" + _PENDING,
)
@sentence(
    PARTITION,
    _HEAD + r"Submitting ISR state change " + _PENDING + r"\(.*?LeaderAndIsr\((?P<state>.*?)\),"
    r" leaderRecoveryState=\w+, lastCommittedState",
)
def _proposed(account: Account, match: re.Match[str]) -> None:
    """The leader proposes an ISR to the controller (2.7 on); an expansion is logged only here."""
    partition = _partition(match)
    about = account.of(partition)
    proposed = parse_state(match["state"], partition)
    about.change, about.decided_ms = match["change"].lower(), account.at_ms
    joins = {int(one) for one in _JOINS.findall(match.string)}
    if about.change == "expand":
        account.emit(
            e.IsrUpdateStarted,
            partition=partition,
            change="expand",
            # Without an earlier LeaderAndIsr: the proposed ISR without the new members.
            from_isr=about.isr or tuple(one for one in proposed.isr if one not in joins),
            to_isr=proposed.isr,
            hw=-1,
            leo=-1,
            leader_epoch=about.leader_epoch,
            zk_version=about.zk_version,
        )
    account.emit(
        e.AlterIsrProposed,
        partition=partition,
        isr=proposed.isr,
        leader_epoch=proposed.leader_epoch,
        zk_version=proposed.zk_version,
        pending=match["pending"],
    )


@sentence(
    PARTITION,
    _HEAD
    + r"(?:Controller )?[Ff]ailed to (?:update|enqueue).*?"
    + _PENDING
    + r".*?(?:due to|since|because) (?P<why>[^.]*)",
)
def _proposal_failed(account: Account, match: re.Match[str]) -> None:
    partition = _partition(match)
    account.emit(
        e.AlterIsrFailed,
        partition=partition,
        change=match["change"].lower(),
        error=match["why"].strip(),
        outcome="stays pending",
        cached_zk_version=account.of(partition).zk_version,
    )


known(
    PARTITION,
    r"No checkpointed highwatermark",
    r"Log loaded for partition",
    r"Recorded (replica|follower)",
    r"Leader \S+ starts at",
    r"Follower .* starts at",
    r"Skipp",
    r"Checking if we can expand",
    r"replicas .* out of sync|lagging",
    r"Partition .* was not",
    r"Received fetch|[Ee]xtending|Adding new replica",
)


# -- a broker's process ----------------------------------------------------------------------------


@sentence(SERVER, r"^(?:\[Kafka ?Server (?:id=)?\d+\],? )?starting$")
def _starting(account: Account, match: re.Match[str]) -> None:
    """A new process: earlier state no longer applies."""
    account.partitions.clear()
    account.registered = False
    account.emit(e.BrokerStarting, profile="")
    account.latest_start = len(account.events) - 1
    account.emit(e.ProcessStateChanged, state="starting")


@sentence(SERVER, r"^\[Kafka ?Server (?:id=)?\d+\],? started$")
def _started(account: Account, match: re.Match[str]) -> None:
    account.emit(e.BrokerStarted)
    account.emit(e.ProcessStateChanged, state="up")


@sentence(SERVER, r"^\[Kafka ?Server (?:id=)?\d+\],? shutting down$")
def _stopping(account: Account, match: re.Match[str]) -> None:
    account.emit(e.ProcessStateChanged, state="stopping")


@sentence(SERVER, r"^\[Kafka ?Server (?:id=)?\d+\],? shut down completed$")
def _exited(account: Account, match: re.Match[str]) -> None:
    account.emit(e.BrokerExited)
    account.emit(e.ProcessStateChanged, state="dead")


@sentence("kafka.zk.KafkaZkClient", r"^Creating /brokers/ids/\d+ ")
@sentence("kafka.utils.ZKCheckedEphemeral", r"^Creating /brokers/ids/\d+ ")
def _registers(account: Account, match: re.Match[str]) -> None:
    """Logged before ZooKeeper has the registration."""
    account.causes.sent(("registers", account.broker), account.clock, account.at_ms)
    account.creating_ms = account.at_ms


@sentence(
    "kafka.zk.KafkaZkClient",
    r"^Stat of the created znode at /brokers/ids/\d+ is: (?P<czxid>\d+),\d+,(?P<ctime>\d+),",
)
def _created(account: Account, match: re.Match[str]) -> None:
    """The time of creation by ZooKeeper's clock (2.2 on), known without its transaction log."""
    key, created_ms = ("created", account.broker, match["czxid"]), int(match["ctime"])
    account.causes.sent(key, ZOOKEEPER, created_ms)
    account.causes.arrived(key, account.clock, account.at_ms)
    if account.creating_ms:
        account.causes.sent(("creates", *key), account.clock, account.creating_ms)
        account.causes.arrived(("creates", *key), ZOOKEEPER, created_ms)


@sentence(
    "kafka.zk.KafkaZkClient",
    r"^Registered broker \d+ at path \S+ with addresses: .*?"
    r"(?:czxid \(broker epoch\): (?P<czxid>\d+))?$",
)
@sentence("kafka.utils.ZkUtils", r"^Registered broker \d+ at path (?P<czxid>(?!))?")
def _registered(account: Account, match: re.Match[str]) -> None:
    """Later registrations of the same process follow the end of a session."""
    czxid = int(match["czxid"] or -1)
    account.causes.seen(("zxid", czxid), account.clock, account.at_ms)
    account.causes.arrived(("registered", account.broker), account.clock, account.at_ms)
    if not account.registered:
        account.registered = True
        account.emit(e.BrokerRegistered, broker_epoch=czxid)


@sentence("kafka.zookeeper.ZooKeeperClient", r"Session expired\.$")
@sentence("kafka.server.KafkaHealthcheck", r"re-registering broker info in ZK")
@sentence("org.I0Itec.zkclient.ZkClient", r"zookeeper state changed \(Expired\)")
def _session_expired(account: Account, match: re.Match[str]) -> None:
    account.emit(e.ZkSessionState, state="Expired", session_id=0)


@sentence("org.apache.kafka.common.utils.AppInfoParser", r"Kafka version ?: (?P<version>[\d.]+)")
def _version(account: Account, match: re.Match[str]) -> None:
    account.version = match["version"].rstrip(".")
    # Kafka logs its version after "starting": an upgraded broker has another one at each start.
    if account.latest_start is not None:
        start = account.events[account.latest_start]
        profile = profile_of(account.version)
        account.events[account.latest_start] = msgspec.structs.replace(start, profile=profile)


left_out(
    SERVER,
    "org.apache.kafka.common.utils.AppInfoParser",
    "kafka.zookeeper.ZooKeeperClient",
    "org.I0Itec.zkclient",
    "kafka.server.KafkaHealthcheck",
    "kafka.utils.ZkUtils",
    "kafka.utils.ZKCheckedEphemeral",
    "kafka.zk.KafkaZkClient",
    "kafka.server.ReplicaFetcherThread",
    "kafka.server.KafkaConfig",
    "kafka.log",
)


# -- followers -------------------------------------------------------------------------------------

_FETCHER = (
    r"^\[?(?:ReplicaFetcher replicaId=\d+, leaderId=(?P<leader>\d+), fetcherId=(?P<id>\d+)\]|"
    r"ReplicaFetcherThread-(?P<old_id>\d+)-(?P<old_leader>\d+)\],?) *"
)


def _fetcher(match: re.Match[str]) -> dict[str, int]:
    leader, number = match["leader"] or match["old_leader"], match["id"] or match["old_id"]
    return {"leader": int(leader), "fetcher_id": int(number)}


@sentence("kafka.server.ReplicaFetcherThread", _FETCHER + r"Starting")
def _fetcher_started(account: Account, match: re.Match[str]) -> None:
    account.emit(e.FetcherStarted, **_fetcher(match))


@sentence("kafka.server.ReplicaFetcherThread", _FETCHER + r"Shutdown completed")
def _fetcher_stopped(account: Account, match: re.Match[str]) -> None:
    account.emit(e.FetcherStopped, **_fetcher(match))


_FETCHED = (
    # 2.3 to 2.8; 3.0 on; up to 2.2
    re.compile(
        r"(?P<partition>[\w.-]+-\d+) -> \(offset=(?P<leo>\d+), leaderEpoch=(?P<epoch>-?\d+)"
    ),
    re.compile(
        r"(?P<partition>[\w.-]+-\d+) -> InitialFetchState\(.*?\),(?P<epoch>-?\d+),(?P<leo>\d+)\)"
    ),
    re.compile(
        r"\[(?P<partition>[\w.-]+-\d+), initOffset (?P<leo>\d+) to broker"
        r" BrokerEndPoint\((?P<leader>\d+)(?P<epoch>)"
    ),
)


@sentence(
    "kafka.server.ReplicaFetcherManager",
    r"Added fetcher (?:to broker (?P<leader>\d+) )?for partitions (?P<partitions>.*)",
)
def _follows(account: Account, match: re.Match[str]) -> None:
    """The cause is in state-change.log, if there is one."""
    for pattern in _FETCHED:
        for one in pattern.finditer(match["partitions"]):
            partition = parse_partition(one["partition"])
            about = account.of(partition)
            if about.requested is None:
                about.leads, about.leo = False, int(one["leo"])
                account.emit(
                    e.BecomesFollower,
                    partition=partition,
                    leader=int(match["leader"] or one["leader"]),
                    leader_epoch=int(one["epoch"] or -1),
                    leo=about.leo,
                    hw=-1,
                )


@sentence(
    PARTITION,
    _HEAD + r"(?P<name>\S+) starts at [Ll]eader [Ee]poch (?P<epoch>\d+) from offset (?P<leo>\d+)",
)
def _leads(account: Account, match: re.Match[str]) -> None:
    """Like `_follows`; 0.11 to 2.5 log a new leader here, too."""
    partition = _partition(match)
    about = account.of(partition)
    if about.requested is None:
        about.leader_epoch, about.leads = int(match["epoch"]), True
        account.emit(
            e.BecomesLeader,
            partition=partition,
            leader_epoch=about.leader_epoch,
            leo=int(match["leo"]),
            hw=-1,
        )


known("kafka.server.ReplicaFetcherManager", r"Removed fetcher|[Ss]hutt?ing down|[Ss]hutdown")


@sentence(
    "kafka.log",
    r"^\[(?:Log|UnifiedLog|MergedLog) partition=(?P<partition>\S+), dir=[^\]]*\] Truncating to"
    r" offset (?P<offset>\d+)",
)
@sentence("kafka.log.Log", r"^Truncating log (?P<partition>\S+-\d+) to offset (?P<offset>\d+)\.?$")
def _truncated(account: Account, match: re.Match[str]) -> None:
    """The old log end comes from the preceding line about becoming a follower (-1: none)."""
    partition, to_offset = parse_partition(match["partition"]), int(match["offset"])
    from_leo, account.of(partition).leo = account.of(partition).leo, -1
    account.emit(e.LogTruncated, partition=partition, from_leo=from_leo, to_offset=to_offset)
