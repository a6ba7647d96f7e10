"""Durations in virtual time: declared ranges, drawn per purpose and actor.

The table is versioned data, fixed before any search. It has quantiles in microseconds for each
purpose: warm, and cold (in stages) for code that runs for the first time. Sources: the ranges in
the recordings' README, and measurements in several recordings. Nothing here knows the actor of a
draw.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from math import isqrt

from emulator.kernel.rng import Chance, Stream, mix
from emulator.kernel.scheduler import Task

VERSION = 34
_BUCKETS = 256
_BITS = (1 << 64) - 1
_BELOW_BUCKET = (1 << 56) - 1
_USUAL = 1000

JVM = (
    "boot.logs",
    "boot.replica_manager_startup",
    "boot.propagation",
    "boot.alter_isr",
    "boot.list_ids",
    "boot.controller",
    "boot.coordinator",
    "boot.config",
    "boot.early_controller",
    "boot.early_coordinator",
    "boot.early_config",
    "boot.started",
    "boot.early_started",
    "shutdown.start",
    "shutdown.announce",
    "shutdown.announced",
    "shutdown.sockets",
    "shutdown.quotas",
    "shutdown.purgatories",
    "shutdown.parts",
    "shutdown.woken_purgatories",
    "shutdown.woken_parts",
    "shutdown.exit",
)
"""What a JVM takes to start and to stop."""

BROKERS = (
    *JVM,
    "missed_run",
    "append_refused",
    "fetcher_add",
    "fetcher_start",
    "fetcher_look",
    "fetcher_truncate",
    "fetcher_connect",
    "create_log",
    "create_log.early",
    "create_log.first",
    "log_config",
    "log_config.late",
    "open_log",
    "open_log.early",
    "open_log.first",
    "make_follower",
    "make_leader",
    "control_request",
    "metadata_answered",
    "roles_taken",
    "roles_taken.late",
    "leaders_taken.late",
    "followers_taken.early",
    "followers_taken.late",
    "replicas_stopped",
    "delete_log",
    "write_isr",
    "requests_completed",
    "alter_isr_queued",
    "alter_isr_answered",
    "alter_isr_processed",
    "propose_isr",
    "zkclient_event",
    "controller_event",
    "controller_created",
    "controller_candidate",
    "failover.created",
    "failover.start",
    "failover.features",
    "failover.brokers",
    "failover.topics",
    "failover.commands",
    "failover.state_machines",
    "failover.update_metadata",
    "failover.elections",
    "failover.end",
    "controller_resign",
    "brokers_parsed",
    "brokers_compared",
    "add_broker",
    "brokers_started",
    "remove_broker",
    "notification_processed",
    "create_topic",
    "topic_created",
    "new_partitions",
    "topics_listed",
    "reassign_command",
    "bump_leader_epoch",
    "elect_leaders",
    "leaders_elected",
    "states_created",
    "leaders_moved",
    "leave_isr",
    "left_isr",
    "deletion.start",
    "deletion.announced",
    "deletion.leave_isr",
    "deletion.left_isr",
    "broker_may_go",
)
"""Where a broker's own code takes time; ours takes next to none, on any machine."""

ALIKE = {
    "zk_request": 20,
    "zk_multi": 12,
    "zk_process": 0,
    "zk_reply": 20,
    "zk_watch": 0,
    "controller_event": 0,
}
"""What one server and two shared cores do for all brokers, from a process's given use on: its first
ones load its own classes. In 21 recorded elections of two brokers both had the event of the
deletion within 4 ms of each other, median 1. From there to their attempts they took 5 to 35 ms, and
of the same election within 2 ms of each other in 16."""
SHARED_US = 32_768
"""For so long draws are alike."""
_NEAR = 2
_ALONE_FROM = 240

BACKLOG_MAX = 250
"""More is not worked off after a resume: clients have given up on connections that are so old."""

Quantiles = tuple[tuple[float, int], ...]
"""(share below, microseconds), from 0 to 1."""


def _quick(typical_us: int) -> Quantiles:
    """A message or a short step: mostly near `typical_us`; one in a hundred takes much longer."""
    return (
        (0.0, typical_us // 2),
        (0.5, typical_us),
        (0.9, typical_us * 3),
        (0.99, typical_us * 12),
        (1.0, typical_us * 40),
    )


def _steady(typical_us: int) -> Quantiles:
    """The same after hundreds of uses."""
    return (
        (0.0, typical_us * 3 // 5),
        (0.5, typical_us),
        (0.9, typical_us * 9 // 5),
        (0.99, typical_us * 6),
        (1.0, typical_us * 30),
    )


def _even(typical_us: int) -> Quantiles:
    """With threads that sleep between messages: one in a hundred takes three times as long
    (acks=all on three brokers: 11 ms, the median is 3.7)."""
    return (
        (0.0, typical_us // 2),
        (0.5, typical_us),
        (0.9, typical_us * 8 // 5),
        (0.99, typical_us * 3),
        (1.0, typical_us * 7),
    )


Stages = tuple[tuple[int, int], ...]
"""(up to which use, tenths of the warm duration)."""


def _warming(typical_us: int, stages: Stages) -> list[tuple[int, Quantiles]]:
    """The stages before a message takes `typical_us`: a class's first uses load it, and the next
    thousand are compiled little by little."""
    return [
        (10, ((0.0, 800), (0.5, 2800), (1.0, 7000))),
        *((until, _even(typical_us * tenths // 10)) for until, tenths in stages),
    ]


_MESSAGE: Stages = ((40, 70), (80, 51), (120, 37), (250, 26), (500, 17), (1000, 12))
_PRODUCE: Stages = (
    (40, 76),
    (80, 66),
    (120, 50),
    (250, 37),
    (500, 25),
    (1000, 16),
    (2500, 12),
)


_SHARES = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)


def _ms(*values: float) -> Quantiles:
    """These shares of the draws are below these milliseconds."""
    return tuple((share, round(ms * 1000)) for share, ms in zip(_SHARES, values, strict=True))


_CONTROL: Quantiles = (
    (0.0, 700),
    (0.25, 1300),
    (0.5, 2100),
    (0.75, 3800),
    (0.9, 6800),
    (1.0, 14_000),
)


class Purpose:
    """One row of the table: the duration of warm code, and of each earlier stage of a process's
    first uses, (up to which use, quantiles). `paced`: proportional to the duration of the process's
    boot; the row then applies to a boot of `USUAL_BOOT_US`. `crowded`: so many first uses take
    longer when other processes have theirs at the same time (RecorderLoad).
    """

    def __init__(
        self,
        warm: Quantiles,
        *cold: tuple[int, Quantiles],
        paced: bool = False,
        crowded: int = 0,
    ) -> None:
        self.warm, self.cold, self.paced, self.crowded = warm, cold, paced, crowded


_MS = 1000
USUAL_BOOT_US = 1_500_000
"""From launch to registration. In 106 recorded boots, of 0.9 to 7.8 s, the other steps took in
proportion (connected 0.36 to 0.69 of that time before the registration, ids listed 0.013 to 0.089
before it, started 0.06 to 0.17 after it), and creating a topic as its square root: the two cores
were busy with more than one JVM."""
Table = Mapping[str, Purpose]
"""Rows by purpose."""

TABLE: Table = {
    # The network between brokers, and from and to clients, with the threads that receive a message.
    # With 20 records a second to each of five partitions of three brokers, and of eleven of five,
    # an acks=all request waited 5.6 and 7.8 ms for its followers on average in the first 6 s, 3.1
    # and 2.5 in the next 8, and 2.5 and 2.1 in the end (JMX of 2.6.3).
    "net_connect": Purpose(_quick(600)),
    # A follower far behind, one record per response: 1,640 rounds in 1.3 s. Before, beside 200
    # records a second on a machine that needs 7.5 s for a boot, 386 rounds took 2.9 s.
    "net_request": Purpose(_steady(250), *_warming(250, _MESSAGE)),
    "net_response": Purpose(_steady(250), *_warming(250, _MESSAGE)),
    # What a broker does with a Produce request until the records are in the log. The same clusters
    # took 3.4 and 4.0 ms, 1.3 and 1.1, and 1.0 and 0.6. Of 200 a second to that slow machine one
    # took 6 to 10 ms at first, 4 to 6 from the hundredth on and 3.5 from the 250th on: their
    # results came up to 230 ms late. Of 1,000 a second to another, where a boot took 2.7 s, one
    # took 4.6 ms at first, 2.4, 1.9 and 1.0 at the 250th, 500th and 1,000th, and 0.6 at the
    # 3,000th: up to 1.3 s late.
    "net_produce": Purpose(_even(500), *_warming(500, _PRODUCE)),
    # To a request that waited in a purgatory: the threads at both ends were asleep.
    "net_delayed_response": Purpose(_even(1000), *_warming(1000, _MESSAGE)),
    # What a proxy between two brokers adds. With it a Produce request waited 9.7, 4.3 and 3.8 ms.
    "net_proxy": Purpose(_even(600), (500, _even(900))),
    # From a response until the network thread has read the request that waited behind it on this
    # connection, and a handler takes it. `net_produce` contains it. No recording shows it by
    # itself: with `client_decommission` it makes the odds that are given there.
    "next_request": Purpose(_quick(200), (400, _quick(500))),
    # A controller's requests. From an UpdateMetadata at a broker to the LeaderAndIsr that follows
    # it: 1 to 51 ms, quartiles 4, 7 and 13 (185 recorded, 0.8.2 to 3.3).
    "net_control_request": Purpose(_CONTROL),
    "net_control_response": Purpose(_CONTROL),
    # ZooKeeper: the request, the server, the response. Before its first attempt a new client starts
    # its threads: from the expiry of a session to that attempt 2 to 34 ms, median 5 (73 recorded).
    "zk_open": Purpose(_ms(1.5, 2.5, 3, 4.2, 6, 8, 16)),
    "zk_connect": Purpose(_quick(1500)),
    "zk_reconnect": Purpose(((0.0, 0), (1.0, 999 * _MS))),
    # 600 consecutive ISR writes took 575 ms, after as many earlier ones. Between its 80th and 400th
    # request, a controller that had read or deleted a notification sent the next one 4 to 5 ms
    # later at the median (2.4.1 to 2.7.2); with 0.25 ms here it was 2 to 3.
    "zk_request": Purpose(
        _steady(180),
        (20, ((0.0, 500), (0.5, 2000), (0.9, 6000), (1.0, 25000))),
        (80, ((0.0, 500), (0.5, 1200), (0.9, 2000), (0.97, 4000), (1.0, 8000))),
        (400, _quick(600)),
    ),
    # A process's first multis, and those of its next topics: 3 to 9 ms from one to the next.
    "zk_multi": Purpose(
        _quick(250),
        (12, ((0.0, 500), (0.5, 2 * _MS), (0.9, 5 * _MS), (1.0, 12 * _MS))),
        (60, _quick(900)),
    ),
    "zk_process": Purpose(_steady(110), (400, _quick(150))),
    "zk_reply": Purpose(
        _steady(180),
        (20, ((0.0, 300), (0.5, 1000), (0.9, 3000), (1.0, 12000))),
        (80, ((0.0, 400), (0.5, 1100), (0.9, 1900), (0.97, 3300), (1.0, 6500))),
        (400, _quick(600)),
    ),
    # With the client's two event threads. From a transaction until the controller's request that
    # its event caused 1 to 46 ms passed, median 4 (189 recorded).
    "zk_watch": Purpose(
        (
            (0.0, 700),
            (0.25, 1400),
            (0.5, 2000),
            (0.75, 2900),
            (0.9, 4200),
            (0.99, 11 * _MS),
            (1.0, 30 * _MS),
        ),
        (5, ((0.0, 600), (0.5, 1800), (0.9, 4 * _MS), (1.0, 8 * _MS))),
    ),
    # A restarted server: until it listens, until it has a database, and until it has read its data
    # and serves. Of 12 starts of 3.9.5 with a connect every 2 ms 4 had no database for up to 10 ms.
    # In eight recordings the first of five clients, which try every 1 to 2 s, was answered 0.79 to
    # 1.55 s after the command, median 1.35.
    "zk_start": Purpose(_ms(400, 500, 650, 820, 950, 1100, 1300)),
    "zk_listen": Purpose(((0.0, 0), (0.6, 0), (1.0, 10 * _MS))),
    "zk_load": Purpose(((0.0, 60 * _MS), (0.8, 150 * _MS), (1.0, 300 * _MS))),
    # Work at a broker.
    # Creating 600 logs took 2.3 to 3.1 s; a process's first log took 200 ms, its second 50, its
    # last 2.
    # A process's first log, with the first role in it: from LeaderAndIsr to the log line about the
    # role 15 to 500 ms per 1.5 s of boot, quartiles 100, 151 and 201 (496 partitions, 0.8.2 to
    # 3.3). On three brokers its configuration was read 10 to 17 ms after LeaderAndIsr at the median
    # up to 2.1 (154 processes), 30 in 2.4 (27), 56 from 2.6 on (54) and 44 from 2.8 on (54); on
    # five 27 to 59 (72), 89 (12), 100 and 114 (24 each). From there to the role it took 63 to 67,
    # 93, 108 and 65 ms, on five 184 to 192, 284, 155 and 187.
    "create_log": Purpose(
        ((0.0, 500), (0.5, 1400), (0.9, 3500), (0.99, 10 * _MS), (1.0, 60 * _MS)),
        (
            1,
            (
                (0.0, 16 * _MS),
                (0.1, 48 * _MS),
                (0.25, 66 * _MS),
                (0.5, 88 * _MS),
                (0.75, 112 * _MS),
                (0.9, 142 * _MS),
                (0.97, 190 * _MS),
                (1.0, 310 * _MS),
            ),
        ),
        (2, ((0.0, 3 * _MS), (0.5, 15 * _MS), (0.9, 35 * _MS), (1.0, 75 * _MS))),
        (
            5,
            ((0.0, 2 * _MS), (0.5, 13 * _MS), (0.85, 35 * _MS), (0.97, 60 * _MS), (1.0, 110 * _MS)),
        ),
        (12, ((0.0, 2 * _MS), (0.5, 9 * _MS), (0.9, 27 * _MS), (1.0, 60 * _MS))),
        (100, ((0.0, 2 * _MS), (0.5, 5 * _MS), (0.9, 10 * _MS), (1.0, 30 * _MS))),
        (300, ((0.0, 1 * _MS), (0.5, 2800), (0.9, 6 * _MS), (1.0, 20 * _MS))),
        paced=True,
        crowded=1,
    ),
    # Added to the row above up to 2.4. From the configuration to the role of a process's second
    # LeaderAndIsr with new logs it took 83 ms (up to 0.10), 49 and 117 (2.4) at the median on five
    # brokers, later 22; of its third 67, 44 and 39, later 22.
    "create_log.early": Purpose(
        ((0.0, 0), (1.0, 0)),
        (1, _ms(1.5, 6, 10, 14, 20, 28, 50)),
        (2, _ms(6, 18, 32, 50, 72, 100, 160)),
        (5, _ms(1, 4, 8, 14, 21, 30, 55)),
        paced=True,
        crowded=5,
    ),
    # Added up to 0.10 and in 2.4, whose first logs took as long in shorter boots (184 to 192 ms on
    # five brokers, see above) or longer (284).
    "create_log.first": Purpose(
        ((0.0, 0), (1.0, 0)),
        (1, _ms(1.5, 6, 10, 14, 20, 28, 50)),
        (2, _ms(3, 9, 18, 28, 42, 60, 100)),
        (5, _ms(2, 6, 11, 20, 30, 40, 60)),
        paced=True,
        crowded=5,
    ),
    # Before a new log's configuration is read. In a process's second such LeaderAndIsr 13 to 31 ms
    # after the request, in its third 5 to 9, in later ones 8, in moves 11 (medians); there the role
    # came 33 ms later (15). The second row is added from 2.6 on.
    "log_config": Purpose(
        _quick(100),
        (1, _ms(1, 3, 5, 8, 12, 18, 40)),
        (5, _ms(1, 2.5, 4, 6, 9, 13, 25)),
        (12, _ms(1, 3, 5, 8, 12, 20, 35)),
        paced=True,
        crowded=1,
    ),
    "log_config.late": Purpose(
        ((0.0, 0), (1.0, 0)),
        (1, _ms(6, 14, 18, 25, 33, 44, 75)),
        paced=True,
        crowded=1,
    ),
    # A log that exists. From LeaderAndIsr to the first role of a restarted broker, per 1.5 s of
    # boot: 8 to 95 ms, median 23, from 2.6 on (90); 18 to 83, median 47, from 1.0 to 2.4 (48),
    # where the first row below is added; 51 to 182, median 102, up to 0.10 (33), where both are.
    "open_log": Purpose(_quick(400)),
    "open_log.early": Purpose(((0.0, 0), (1.0, 0)), (1, _ms(1, 4, 8, 15, 24, 34, 50)), paced=True),
    "open_log.first": Purpose(
        ((0.0, 0), (1.0, 0)), (1, _ms(14, 22, 30, 48, 68, 90, 120)), paced=True
    ),
    # When a follower became leader for the first time 1 to 40 ms, median 15 (35 of 2.6 to 3.3;
    # older lines come later).
    "make_follower": Purpose(
        _quick(400),
        (1, _ms(3, 8, 13, 18, 25, 38, 95)),
        (2, _ms(0.2, 0.5, 1, 2, 4, 7, 15)),
        paced=True,
    ),
    "make_leader": Purpose(
        _quick(400),
        (1, _ms(2, 6, 11, 19, 28, 40, 75)),
        (2, _ms(0.3, 0.8, 1.5, 3, 5, 10, 25)),
        paced=True,
    ),
    # Before a control request is carried out. A started broker obeyed the controller's first one,
    # UpdateMetadata, after 10 to 190 ms per 1.5 s of boot, median 45, and the next, LeaderAndIsr,
    # after 4 to 42 more, median 12, from 1.0 on (120). Up to 0.10 that took 54 to 157, median 72
    # (33): 20 ms at least, also on the fastest machine.
    "control_request": Purpose(
        ((0.0, 0), (0.9, 60), (1.0, 300)),
        (
            1,
            (
                (0.0, 4 * _MS),
                (0.25, 24 * _MS),
                (0.5, 34 * _MS),
                (0.75, 47 * _MS),
                (0.9, 76 * _MS),
                (1.0, 150 * _MS),
            ),
        ),
        (2, _ms(0.5, 1.5, 2.5, 4.5, 7.5, 11, 25)),
        paced=True,
    ),
    "metadata_answered": Purpose(
        ((0.0, 0), (1.0, 0)), (1, _ms(40, 44, 48, 56, 68, 85, 130)), paced=True
    ),
    # From the last log line about a role to the response. Between that line and the next
    # UpdateMetadata at this broker passed, in medians by version: up to 2.4, whose line comes last,
    # 13 to 23 ms after a process's first roles if they were followers, 13 to 30 if they were
    # leaders, 33 to 49 if both (450), and 2 to 9 after later ones (552).
    "roles_taken": Purpose(
        ((0.0, 0), (0.5, 500), (0.9, 3 * _MS), (1.0, 14 * _MS)),
        (1, _ms(1.5, 3, 6, 13, 26, 45, 100)),
        (3, _ms(0.2, 0.5, 0.8, 1.5, 5, 12, 35)),
        paced=True,
    ),
    # Added from 2.6 on, whose lines come before fetchers are changed and delayed requests are
    # completed: after later roles 12 to 15 ms in 2.6.3 (830), 12 to 19 in 2.7.2 (409), 11 to 29 in
    # 2.8.2 and 3.3.2 (166).
    "roles_taken.late": Purpose(
        _ms(0.2, 0.7, 2, 5, 11, 21, 45),
        (1, _ms(3, 5, 8, 12, 18, 30, 60)),
        (4, _ms(0.5, 1.5, 3.5, 7, 14, 25, 50)),
        paced=True,
    ),
    # And what a process's first leaders and first followers cost. After first leaders 18 to 41 ms
    # if it had only followed (241); after first followers 52 to 116 if it had only led (87); after
    # first roles 52 to 93 for followers, 40 to 67 for leaders, 114 to 191 for both (978).
    "leaders_taken.late": Purpose(
        ((0.0, 0), (1.0, 0)), (1, _ms(0.5, 2.5, 5, 10, 18, 30, 55)), paced=True
    ),
    # Before the line, where it comes last (up to 2.4): from LeaderAndIsr to the last line about
    # later followers 19 ms up to 0.10 (153 batches), then 8 or 9 (227; medians); without this 1 or
    # 2.
    "followers_taken.early": Purpose(_ms(0.2, 1.5, 3, 8, 14, 26, 50), paced=True),
    "followers_taken.late": Purpose(
        ((0.0, 0), (1.0, 0)), (1, _ms(6, 12, 17, 25, 42, 66, 120)), paced=True
    ),
    # Until the response to StopReplica. Of nine stopping brokers eight had the next request 8 to
    # 100 ms after the first one, median 17, and all later ones after 1 to 9. The controller had
    # sent it 3 to 29 ms after the replica's last log line, mostly later than this.
    "replicas_stopped": Purpose(
        _quick(400), (1, ((0.0, 1 * _MS), (0.5, 5 * _MS), (0.9, 11 * _MS), (1.0, 15 * _MS)))
    ),
    # A deleted log, within that. From the StopReplica of the last broker to the deletion of the
    # topic's znodes 33 to 44 ms, median 40 (seven deletions of one partition, 2.6.3 and 2.7.2), 89
    # for three. Up to 2.5, with a request for each partition, the second one is processed 12 to 25
    # ms after the first, the third 3 or 4 (2.4.1).
    "delete_log": Purpose(_ms(1, 2, 3, 4, 7, 12, 25), (1, _ms(12, 22, 28, 33, 38, 45, 80))),
    # A leader that writes its ISR itself, from the log line to the request, per 1.5 s of boot: 1 to
    # 69 ms, median 6, for a process's first change (171). From the line to the transaction 491
    # changes, first ones included, took 0 to 51 ms, medians 2 to 4 by version.
    "write_isr": Purpose(
        _quick(200),
        (1, _ms(0.3, 1.2, 2.2, 4.4, 7.8, 11, 20)),
        (12, _ms(0.05, 0.1, 0.2, 0.4, 1.1, 2.5, 7)),
        paced=True,
    ),
    # After a shrink, from when a request that waited behind a completed one is appended until the
    # next partition is checked; 0: that is first. Of two partitions of one producer with acks=all,
    # the second has no new record until the first one's request is completed: its shrink followed
    # in the same run in one of six recorded cases, and in the next run in five (2.1.1 to 2.6.3).
    "requests_completed": Purpose(
        _ms(0, 0, 0, 0, 0, 0, 1), (1, _ms(0, 0, 0, 0, 0, 1.5, 8)), paced=True
    ),
    # From a process's first proposal to the controller's write 17 to 25 ms, median 23, and 9 to 20
    # more, median 15, to the leader's next log line (12 of 2.8.2 and 3.3.2).
    "alter_isr_queued": Purpose(_quick(100), (1, _ms(6, 9, 12, 15, 18, 22, 30)), paced=True),
    "alter_isr_answered": Purpose(_quick(100), (1, _ms(0.2, 1, 2, 3, 5, 7, 10)), paced=True),
    # Between the write and the read that follows it, and from there to UpdateMetadata. Recorded
    # from request to request 2 to 18 ms, quartiles 3, 4 and 11 (222), and from the read to the
    # first broker's log line 1 to 20 ms, quartiles 3, 5 and 10 (209).
    "alter_isr_processed": Purpose(_ms(0.6, 1.2, 1.7, 2.3, 4, 7, 14), paced=True),
    # 600 took 20 ms; a process's first took 3 ms.
    "propose_isr": Purpose(_quick(15), (1, ((0.0, 1 * _MS), (0.5, 3500), (1.0, 9 * _MS)))),
    # Until ZkClient's event thread (up to 1.0) has taken an event. A process's first one, at an
    # election: from the transaction to the request 3 to 12 ms, quartiles 5, 5 and 7 (32 recorded).
    # At its own election the controller's next request came 0 to 7 ms after it; of 48 first ones up
    # to 0.10 one came 6 ms before it.
    "zkclient_event": Purpose(
        _quick(100),
        (
            1,
            (
                (0.0, 1500),
                (0.25, 2200),
                (0.5, 2500),
                (0.75, 2800),
                (0.95, 3200),
                (0.97, 6 * _MS),
                (1.0, 12 * _MS),
            ),
        ),
    ),
    "controller_event": Purpose(
        _quick(300), (30, ((0.0, 200), (0.5, 600), (0.9, 1800), (1.0, 6 * _MS)))
    ),
    # From the list of topics until a new one's handler is registered, which makes later reads of
    # the topic watched ones, and until the assignment is read. Recorded from request to request
    # (1.0.2 to 3.3.2): 1 to 11 ms for a controller's first topic, quartiles 2, 3 and 5 (128); 1
    # to 21 ms for later ones, quartiles 2, 4 and 8 (64).
    "topics_listed": Purpose(
        (
            (0.0, 500),
            (0.25, 1200),
            (0.5, 2500),
            (0.75, 6 * _MS),
            (0.9, 12 * _MS),
            (1.0, 20 * _MS),
        ),
        (1, ((0.0, 500), (0.5, 2500), (0.9, 5 * _MS), (1.0, 7 * _MS))),
    ),
    # From a topic's create to the read of its id. Of 48 recorded topics of 2.8.2 and 3.3.2 the
    # controller, woken by the same create, listed the topics 1 ms before (-4 to 2) in 40, after it
    # in six, and in two, both of them a broker's first, it had registered its handler by then. In
    # plays of their stories on three and four brokers it is first in 86 of 104.
    "topic_created": Purpose(
        ((0.0, 600), (0.5, 1700), (0.9, 2500), (0.95, 3 * _MS), (1.0, 6 * _MS))
    ),
    # The first use of the command znode's parser: from its read to the next request 8 to 75 ms,
    # median 21 (23 of 0.8.2 to 2.1), 200 in 2.6.3 (admin-znodes).
    "reassign_command": Purpose(_quick(300), (1, _ms(3, 5, 8, 16, 28, 42, 200))),
    # Before a reassignment raises the leader epoch, and before it sends it. From the topic's write
    # to that of the epoch 5 to 122 ms, quartiles 8, 10 and 27, and from there to the first
    # LeaderAndIsr 4 to 60, quartiles 4, 5 and 9 (19 first ones of a process, 2.4 to 3.3).
    "bump_leader_epoch": Purpose(_quick(500), (2, _ms(0.5, 1, 1.5, 3, 9, 27, 90))),
    # Before a controller reads states, and before it writes them. From the address that a stopping
    # broker looks up to the first read, quartiles 8, 11 and 15 ms for a controller's first election
    # (54), later 4, 7 and 10 (11); from there to the write 5, 7 and 9, later 2, 2 and 5.
    "elect_leaders": Purpose(
        ((0.0, 100), (0.5, 600), (0.9, 2500), (0.99, 12 * _MS), (1.0, 25 * _MS)),
        (1, ((0.0, 300), (0.5, 2 * _MS), (0.8, 7 * _MS), (0.9, 20 * _MS), (1.0, 120 * _MS))),
        (2, ((0.0, 300), (0.5, 3 * _MS), (0.9, 9 * _MS), (1.0, 55 * _MS))),
    ),
    # From the write of the states to the first LeaderAndIsr at a broker: 2 to 34 ms, median 6 (34
    # recorded first elections). Of new partitions 3 to 136, quartiles 17, 23 and 31, per 1.5 s of
    # boot, for a controller's first topic (158).
    "leaders_elected": Purpose(
        ((0.0, 100), (0.5, 600), (0.9, 3 * _MS), (1.0, 7 * _MS)),
        (1, ((0.0, 100), (0.5, 1 * _MS), (0.9, 5 * _MS), (1.0, 26 * _MS))),
        paced=True,
    ),
    "states_created": Purpose(
        _ms(0.3, 0.8, 1.3, 2, 4, 8, 15), (1, _ms(1.5, 5, 8, 11, 14, 19, 32)), paced=True
    ),
    # A controlled shutdown, in nine recorded stops. From the requests about its leaderships to the
    # changes of its replicas, if it has any: 6 to 100 ms, median 16 (five); divided by the root of
    # the boot time 4 to 68, median 12.
    "leaders_moved": Purpose(
        _quick(300),
        (1, ((0.0, 4 * _MS), (0.5, 11 * _MS), (0.8, 17 * _MS), (1.0, 60 * _MS))),
    ),
    # A replica leaves the ISR: 2 to 47 ms from the read of the state to its write, quartiles 7, 9
    # and 16 (35 stops, 0.8.2 to 3.3), and 2 to 20 more to the log line about the replica: a
    # controller's first 5, 20 and 8, later ones 2 to 12 (five).
    "leave_isr": Purpose(
        ((0.0, 300), (0.5, 3 * _MS), (0.9, 9 * _MS), (1.0, 20 * _MS)),
        (1, ((0.0, 1 * _MS), (0.25, 4 * _MS), (0.5, 7 * _MS), (0.9, 18 * _MS), (1.0, 40 * _MS))),
    ),
    "left_isr": Purpose(
        ((0.0, 200), (0.5, 2 * _MS), (0.9, 7 * _MS), (1.0, 11 * _MS)),
        (1, ((0.0, 1 * _MS), (0.5, 4500), (0.9, 9 * _MS), (1.0, 13 * _MS))),
    ),
    # A topic is deleted (16 recordings, 1.0.2 to 3.3.2). From the list of commands to the first
    # UpdateMetadata at a broker 5 to 25 ms, median 9; to the first read of a state 9 to 40, median
    # 16. From a controller's first such read to the write 3 to 13, median 4, later 1 to 3 (10
    # once); from the first write to the next read 2 to 10, median 4, later 1 to 4.
    "deletion.start": Purpose(_ms(0.5, 1, 2, 3, 5, 8, 12), (1, _ms(1.5, 3.5, 4.5, 5.5, 7, 9, 18))),
    "deletion.announced": Purpose(_ms(0.2, 0.5, 1, 2, 4, 7, 10), (1, _ms(0.5, 2, 4, 7, 9, 12, 16))),
    "deletion.leave_isr": Purpose(
        _ms(0.2, 0.4, 0.7, 1.2, 2, 3, 8), (1, _ms(1, 1.5, 2, 3, 4, 6, 11))
    ),
    "deletion.left_isr": Purpose(
        _ms(0.2, 0.5, 0.8, 1.3, 2, 3, 4), (1, _ms(0.8, 1.3, 2, 3, 4.5, 5.5, 9))
    ),
    # From the last such line to the broker's response: 3 to 40 ms, median 11; divided by the root
    # of the boot time 2 to 27, median 10.
    "broker_may_go": Purpose(
        _quick(300),
        (1, ((0.0, 0), (0.3, 2 * _MS), (0.5, 6 * _MS), (0.9, 12 * _MS), (1.0, 24 * _MS))),
    ),
    # Between `/controller` and the epoch, if these are two steps (up to 2.0). In 27 recorded
    # elections the read of the epoch came -5 to 17 ms after the first read of the event thread,
    # median 4, and in 14 of 22 first ones before its second. From the transaction that created
    # `/controller` to that read 5 to 12 ms, quartiles 6, 6.5 and 8 (33 first ones up to 0.9), with
    # an event queue 4 to 17, quartiles 7, 8 and 11 (31 of 1.0 and 1.1).
    "controller_created": Purpose(_quick(400), (1, _ms(2.4, 3.4, 3.8, 4.2, 4.8, 6, 14))),
    # Between the read of the epoch and the election (from 2.1 on). In 36 first attempts of recorded
    # processes 1 to 15 ms, median 5; in 28 where the cluster began 4 to 62, median 9; in five later
    # ones 1 to 12, median 2. Ours took 2 without this.
    "controller_candidate": Purpose(
        _quick(200), (1, ((0.0, 100), (0.5, 3 * _MS), (0.9, 9 * _MS), (1.0, 45 * _MS)))
    ),
    # A fail-over, from request to request, per 1.5 s of boot (136 first fail-overs of processes of
    # 1.0 to 3.3; two stages also in 51 up to 0.10).
    # What an event queue adds to `controller_created`.
    "failover.created": Purpose(_quick(100), (1, _ms(0, 0.1, 0.3, 0.6, 1.2, 3, 10)), paced=True),
    "failover.start": Purpose(_quick(100), (1, _ms(0.3, 1, 3, 7, 11, 14, 22)), paced=True),
    "failover.features": Purpose(_quick(100), (1, _ms(1, 4, 25, 36, 46, 56, 85)), paced=True),
    "failover.brokers": Purpose(_quick(100), (1, _ms(0.5, 2.5, 7, 16, 28, 36, 50)), paced=True),
    "failover.topics": Purpose(_quick(100), (1, _ms(0.5, 1.5, 3, 5, 7, 10, 14)), paced=True),
    "failover.commands": Purpose(_quick(100), (1, _ms(0.5, 2, 3.5, 6, 9, 11, 18)), paced=True),
    "failover.state_machines": Purpose(
        _quick(100), (1, _ms(6, 8, 9.5, 12, 18, 30, 80)), paced=True
    ),
    "failover.update_metadata": Purpose(
        _quick(100), (1, _ms(7, 12, 15, 20, 26, 34, 52)), paced=True
    ),
    "failover.elections": Purpose(_quick(100), (2, _ms(0.3, 1, 2.2, 4.5, 8.5, 13, 30)), paced=True),
    "failover.end": Purpose(_quick(100), (1, _ms(0.3, 1, 3, 6, 11, 16, 24)), paced=True),
    # A change of registrations, per 1.5 s of boot: from the reads to the log line 2 to 21 ms,
    # median 8 (66 of 2.4 to 3.3), where each is parsed alone (up to 0.10) 20 more (130); from there
    # to the first replica online 2 to 24, median 10 (109), and to the watch 6 more; from the log
    # line of a death to the first read of a state 5 to 37, median 13 (72).
    "brokers_parsed": Purpose(
        _ms(4, 8, 11, 17, 25, 38, 70),
        paced=True,
    ),
    "brokers_compared": Purpose(
        _ms(0.2, 0.5, 1, 1.5, 3, 5, 9), (2, _ms(0.5, 1, 2, 3.5, 5.5, 8, 12)), paced=True
    ),
    "add_broker": Purpose(
        _ms(1.5, 3.5, 5, 7, 10, 14, 22), (1, _ms(4, 8, 12, 15, 19, 23, 35)), paced=True
    ),
    "remove_broker": Purpose(
        _ms(3, 6, 9, 11, 15, 18, 30),
        paced=True,
    ),
    "brokers_started": Purpose(
        _ms(0.5, 2, 3, 5, 7.5, 11, 16),
        paced=True,
    ),
    # From the states that a notification names to its removal, per 1.5 s of boot: 2 to 22, median
    # 9 (53 first ones).
    "notification_processed": Purpose(
        _ms(0.3, 1, 2, 3, 5, 8, 12), (1, _ms(0.5, 2, 3.5, 5.5, 8, 12, 20)), paced=True
    ),
    # A new topic, per 1.5 s of boot: from the check that it does not exist to its creation 4 to 38
    # ms, median 15 (116), and from its assignment to its partitions 12 to 45, median 19 (78).
    "create_topic": Purpose(
        ((0.0, 300), (0.5, 3000), (0.9, 10_000), (1.0, 25_000)),
        (1, ((0.0, 300), (0.25, 1500), (0.5, 3500), (0.9, 12_000), (1.0, 25_000))),
        paced=True,
    ),
    "new_partitions": Purpose(
        _ms(0.5, 1, 2, 3, 5, 8, 12), (1, _ms(6, 8.5, 10.5, 13, 16, 21, 36)), paced=True
    ),
    # A resignation (timers, state machines) before send threads end. From the session's end to
    # "Resigned" 8 to 32 ms, median 16, on an active controller (16 recorded), and 3 to 10 on
    # others. After the deletion of `/controller`, beside a shell, from its read to "Resigned" 9 to
    # 78 ms, quartiles 19, 23 and 42 (17): of the old controllers only four tried to be elected
    # again, of the 39 other brokers all but one.
    "controller_resign": Purpose(_quick(2000), (1, _ms(3, 5, 8, 11.5, 18, 25, 39))),
    # A boot, backwards from the registration (see `not_before`), and forwards after it.
    "boot.process": Purpose(((0.0, 500 * _MS), (1.0, 700 * _MS))),
    "boot.to_registration": Purpose(
        ((0.0, 540 * _MS), (0.1, 675 * _MS), (0.5, 765 * _MS), (0.9, 840 * _MS), (1.0, 1035 * _MS)),
        paced=True,
    ),
    # From the phases of notifications, per 1.5 s of boot 30 to 110 ms in nearly all of some 60
    # processes of 2.6.3, and about 200 in two.
    "boot.replica_manager_to_registration": Purpose(
        _ms(22, 40, 50, 62, 80, 110, 220),
        paced=True,
    ),
    "boot.list_ids": Purpose(((0.0, 1 * _MS), (0.5, 4 * _MS), (1.0, 10 * _MS)), paced=True),
    "boot.replica_manager_startup": Purpose(((0.0, 1 * _MS), (1.0, 12 * _MS))),
    "boot.propagation": Purpose(((0.0, 0), (1.0, 15 * _MS))),
    # From isr-expiration to 2.7's send-alter-isr: in three recorded boots the timer of 50 ms fired
    # 1 to 3 ms after warm proposals, and had passed when a process's first one was made.
    "boot.alter_isr": Purpose(((0.0, 500), (1.0, 4 * _MS))),
    "boot.logs": Purpose(((0.0, 20 * _MS), (1.0, 120 * _MS))),
    "boot.controller": Purpose(
        (
            (0.0, 28 * _MS),
            (0.1, 45 * _MS),
            (0.5, 62 * _MS),
            (0.9, 90 * _MS),
            (1.0, 125 * _MS),
        ),
        paced=True,
    ),
    "boot.coordinator": Purpose(((0.0, 5 * _MS), (0.6, 15 * _MS), (1.0, 40 * _MS)), paced=True),
    "boot.config": Purpose(((0.0, 8 * _MS), (0.6, 30 * _MS), (1.0, 60 * _MS)), paced=True),
    # Up to 1.0 the registration comes last. From the phases of the leaders' shrinks, per 1.5 s of
    # boot: 0.9.0.1 144 to 349 ms, median 265; 0.10.2.2 120 to 216, median 194; 1.0.2 87 to 170,
    # median 150 (45 processes). From the first read of `/controller`, which comes some ms later:
    # 0.8.2.2 120 to 174, median 145; 0.9.0.1 135 to 334, 250; 0.10.2.2 97 to 193, 168; 1.0.2 72 to
    # 177, 130; and from its creation in a cluster's first controller 125 to 177, 154; 173 to 317,
    # 268; 168 to 306, 279; 105 to 194, 162 (102 and 49 processes).
    "boot.replica_manager_to_late_registration_callbacks": Purpose(
        ((0.0, 85 * _MS), (0.25, 145 * _MS), (0.5, 180 * _MS), (0.75, 250 * _MS), (1.0, 345 * _MS)),
        paced=True,
    ),
    "boot.replica_manager_to_late_registration_queue": Purpose(
        ((0.0, 95 * _MS), (0.1, 130 * _MS), (0.5, 160 * _MS), (0.9, 195 * _MS), (1.0, 215 * _MS)),
        paced=True,
    ),
    # From the start of the controller of a broker that is elected then; from its `/controller` on
    # 72 to 161 ms, median 92, which is 39 ms before to 21 ms after the end of its fail-over (16
    # recorded, 1.0.2).
    "boot.election_to_late_registration": Purpose(
        _ms(112, 118, 124, 131, 142, 162, 197), paced=True
    ),
    # From the first read of `/config/changes`: 7 to 43 ms, median 14, up to 0.9; 14 to 70, median
    # 23, in 0.10.2.2 and 1.0.2 (270 boots).
    "boot.config_to_late_registration": Purpose(_ms(7, 10, 13, 17, 23, 30, 50), paced=True),
    "boot.while_elected_callbacks": Purpose(
        ((0.0, 10 * _MS), (0.5, 50 * _MS), (1.0, 110 * _MS)), paced=True
    ),
    # With an event queue the main thread boots on while another thread runs the election.
    "boot.while_elected_queue": Purpose(_ms(25, 34, 38, 42, 46, 50, 60), paced=True),
    "boot.early_controller": Purpose(
        ((0.0, 5 * _MS), (0.5, 25 * _MS), (1.0, 50 * _MS)), paced=True
    ),
    "boot.early_coordinator": Purpose(((0.0, 2 * _MS), (1.0, 14 * _MS)), paced=True),
    "boot.early_config": Purpose(((0.0, 4 * _MS), (1.0, 25 * _MS)), paced=True),
    "boot.started": Purpose(
        ((0.0, 10 * _MS), (0.5, 35 * _MS), (0.85, 75 * _MS), (0.95, 130 * _MS), (1.0, 260 * _MS)),
        paced=True,
    ),
    "boot.early_started": Purpose(
        ((0.0, 5 * _MS), (0.5, 14 * _MS), (0.9, 45 * _MS), (1.0, 110 * _MS)), paced=True
    ),
    # An orderly stop, whose code runs for the first time: until the controller's id is read (4 to
    # 36 ms in 30 recorded stops, medians 11 up to 0.10, 17 from 1.0 to 2.1, 19 later, however long
    # the boots were; 114 on a busy machine), until the request to the controller (3 to 21 ms from
    # its address to its first read of a state, and 84 and 107 on two busy machines), until the
    # socket server stops, and until it has stopped (server.log of 30 stops: 1 to 29 ms, median 7,
    # and 6 to 67 ms, median 11; six more of 0.9.0.1, 0.10.2.2 and 1.0.2: 10 to 16).
    # The reapers of four purgatories end within 200 ms each, then those of four more; then the
    # process ends.
    "shutdown.start": Purpose(
        ((0.0, 4 * _MS), (0.25, 9 * _MS), (0.5, 14 * _MS), (0.9, 26 * _MS), (1.0, 70 * _MS))
    ),
    "shutdown.announce": Purpose(((0.0, 200), (0.5, 700), (0.9, 4 * _MS), (1.0, 30 * _MS))),
    "shutdown.announced": Purpose(
        ((0.0, 500), (0.5, 5 * _MS), (0.8, 12 * _MS), (0.95, 25 * _MS), (1.0, 45 * _MS)), paced=True
    ),
    "shutdown.sockets": Purpose(
        ((0.0, 5 * _MS), (0.25, 8500), (0.5, 11 * _MS), (0.9, 17 * _MS), (1.0, 40 * _MS))
    ),
    # KafkaApis.close (0.9, 0.10): the first poll of 1 s began at any time. The two reapers began to
    # poll together, so the second one's poll ends just then or has just begun. From the stop to the
    # session's end 0.42, 0.52, 0.83, 1.7, 2.2 and 2.6 s; in six stops of 0.8.2 and 1.0 0.6 to 0.7.
    "shutdown.quotas": Purpose(
        ((0.0, 0), (0.49, 30 * _MS), (0.51, 970 * _MS), (1.0, 1000 * _MS)),
        (1, ((0.0, 1 * _MS), (1.0, 1000 * _MS))),
    ),
    # From the stop to the session's end 0.25 to 2.2 s, median 0.91 (45 stops, 0.8.2 and 1.0 to
    # 2.8).
    "shutdown.purgatories": Purpose(((0.0, 50 * _MS), (0.5, 350 * _MS), (1.0, 640 * _MS))),
    "shutdown.parts": Purpose(
        ((0.0, 60 * _MS), (0.15, 250 * _MS), (0.5, 430 * _MS), (0.8, 700 * _MS), (1.0, 1300 * _MS))
    ),
    # Reapers that are woken: from the stop to the session's end 72, 141 and 196 ms in
    # three stops of 3.3.2, and 1.1 s in a fourth.
    "shutdown.woken_purgatories": Purpose(((0.0, 5 * _MS), (0.5, 15 * _MS), (1.0, 60 * _MS))),
    "shutdown.woken_parts": Purpose(((0.0, 20 * _MS), (0.5, 100 * _MS), (1.0, 240 * _MS))),
    "shutdown.exit": Purpose(((0.0, 400 * _MS), (1.0, 2000 * _MS))),
    # From a fetcher thread's start until partitions are added to it; until its check for
    # truncation, and from there until its check for fetching. In some 65 first starts of a process,
    # partitions were added -150 to 155 ms after the thread's first log line, median 3. In about a
    # dozen they came between the two checks, all within 7 ms. In some 60 later starts none did.
    "fetcher_add": Purpose(
        _quick(40),
        (
            1,
            (
                (0.0, 200),
                (0.3, 1500),
                (0.6, 5 * _MS),
                (0.9, 16 * _MS),
                (0.97, 40 * _MS),
                (1.0, 150 * _MS),
            ),
        ),
    ),
    "fetcher_start": Purpose(
        _quick(200),
        (1, ((0.0, 300), (0.5, 2 * _MS), (0.9, 6 * _MS), (0.97, 25 * _MS), (1.0, 150 * _MS))),
    ),
    "fetcher_look": Purpose(
        _quick(15), (1, ((0.0, 300), (0.5, 1200), (0.9, 2500), (1.0, 6 * _MS)))
    ),
    # Until it has sent its first request; cold for a process's first two. From a restarted
    # follower's role to the decision that expands the ISR, per 1.5 s of boot: 0 to 116 ms, medians
    # 37 to 76, up to 0.10 (67), mostly 38 to 141, medians 56 to 106, from 1.0 to 2.4 (84) and 50 to
    # 230, median 89, in 2.6 (129), where nobody waited for the back-off.
    "fetcher_connect": Purpose(_quick(100), (2, _ms(2, 4, 7, 13, 24, 42, 180))),
    # From 2.1 on, before the leader says where the logs part: part of the times above; there 32 to
    # 118 ms, median 78, in 2.8 and 3.3 (42).
    "fetcher_truncate": Purpose(
        ((0.0, 0), (1.0, 0)), (2, _ms(10, 20, 28, 40, 55, 72, 120)), paced=True
    ),
    # An append that is refused for too small an ISR. Records that had waited in one connection, one
    # per request, until the ISR grew again: 2 refused within 26 ms (3.3.2), 20 in 111 ms (2.8.2).
    # 75 of them on a slow machine, where boots took 3 s: the first record was acknowledged 1.4, 1.6
    # and 1.8 s after the ISR had shrunk, with the producer's fourth retry, and once with its fifth,
    # after 2.1 to 2.6 (2.6.3). So all 75 took less than 0.3 s, beside `net_produce`.
    "append_refused": Purpose(
        _ms(0.03, 0.05, 0.07, 0.1, 0.15, 0.25, 0.6),
        (2, _ms(3, 4.5, 6, 8, 10, 13, 18)),
        (20, _ms(0.3, 0.5, 0.7, 0.9, 1.2, 1.6, 3)),
    ),
    # Between two runs of a periodic task that make up for missed runs.
    "missed_run": Purpose(((0.0, 100), (0.5, 600), (0.9, 2500), (1.0, 10 * _MS))),
    # After a resume: how long the process is sluggish, when its threads first run (network threads
    # find readable sockets; timers come later), and what a step costs meanwhile. Until the broker
    # is back in an ISR: 6 to 53 ms, median 14, in 57 resumes of the stories; 1 to 228 ms, median
    # 12, in 76 of the given recordings. Only the first resume of a process is slow: from there to
    # its first expansion 10 to 38 ms, median 15 (52), from later ones 1 to 9, median 3 (29); to the
    # first shrink that it decides 1 to 35 ms, median 5 (24). Most rows have a stage for that one.
    "resume_window": Purpose(
        ((0.0, 1 * _MS), (1.0, 8 * _MS)), (1, ((0.0, 5 * _MS), (1.0, 40 * _MS)))
    ),
    # The cost of each waiting item (mainly clients' requests), and how much of it precedes a
    # fetcher's first step, in thousandths. First expands after clients had waited 11 s for a
    # leader: 11 to 43 ms (8 five-brokers-pauses), but 10 to 228 (5 random-7, on a slower machine).
    "resume_backlog": Purpose(((0.0, 0), (0.5, 60), (0.9, 200), (1.0, 900))),
    "resume_share": Purpose(((0.0, 0), (1.0, 1000))),
    "resume_network": Purpose(
        ((0.0, 50), (0.5, 200), (0.85, 600), (0.97, 2 * _MS), (1.0, 12 * _MS)),
        (1, ((0.0, 300), (0.5, 1500), (0.85, 3500), (0.97, 6 * _MS), (1.0, 30 * _MS))),
    ),
    "resume_scheduler": Purpose(
        ((0.0, 200), (0.5, 1000), (0.85, 3 * _MS), (0.97, 8 * _MS), (1.0, 30 * _MS)),
        (1, ((0.0, 700), (0.5, 4500), (0.85, 11 * _MS), (0.97, 17 * _MS), (1.0, 60 * _MS))),
    ),
    "resume_thread": Purpose(
        ((0.0, 0), (0.5, 200), (0.85, 600), (0.97, 2 * _MS), (1.0, 12 * _MS)),
        (1, ((0.0, 300), (0.5, 1500), (0.85, 4 * _MS), (0.97, 8 * _MS), (1.0, 60 * _MS))),
    ),
    "resume_tracker": Purpose(((0.0, 0), (0.6, 200), (0.9, 4000), (1.0, 40 * _MS))),
    "resume_step": Purpose(
        ((0.0, 0), (0.5, 50), (0.9, 300), (1.0, 2 * _MS)),
        (12, ((0.0, 0), (0.5, 150), (0.9, 1000), (1.0, 5 * _MS))),
    ),
    # From an unlock to the waiter's first step: a core must be free.
    "unpark": Purpose(((0.0, 20), (0.5, 300), (0.9, 2000), (1.0, 6 * _MS))),
    # How long before and after an action the machine is busy with it, at the first action of its
    # kind. Around 3 in 100 of 449 recorded first faults a driver's round was more than 15 ms late,
    # around later ones 1 in 100. The second value is the part of the remaining time that delays a
    # message, in thousandths.
    "stimulus_busy": Purpose(
        ((0.0, 0), (1.0, 0)), (1, ((0.0, 0), (0.94, 0), (0.945, 50 * _MS), (1.0, 120 * _MS)))
    ),
    "busy_share": Purpose(((0.0, 0), (1.0, 1000))),
    # The speed of an actor's code, in thousandths of the table's times; drawn once for each actor.
    "speed": Purpose(((0.0, 600), (0.5, 1000), (1.0, 1500))),
    # Clients: how long one takes to start, and how late its driver hands over a record.
    "client_start": Purpose(((0.0, 20 * _MS), (0.8, 150 * _MS), (1.0, 220 * _MS))),
    # A driver is late by the same time in all its rounds, which differs from driver to driver
    # (medians of 338: 1 to 19 ms), and by less than a millisecond more or less in nine of ten
    # (226,825 results: 1 percent below -1 ms, 5 above 2, 1 above 4). Of 7,308 rounds before the
    # first fault 1.1 percent were 4 ms later than the median or more, 0.2 6 ms, 0.05 9, 0.01 12.
    "producer_lateness": Purpose(
        ((0.0, 300), (0.4, 1500), (0.6, 3 * _MS), (0.8, 6 * _MS), (0.9, 9 * _MS), (1.0, 14 * _MS))
    ),
    "producer_handover": Purpose(
        (
            (0.0, 0),
            (0.3, 150),
            (0.75, 450),
            (0.9, 1150),
            (0.96, 2200),
            (0.985, 3600),
            (0.995, 6 * _MS),
            (1.0, 11 * _MS),
        )
    ),
    # Around a resume: the first result of eight brief-lag came 1,550 or 1,551 ms after the last.
    "handover_beside_resume": Purpose(((0.0, 0), (0.5, 300), (0.9, 1500), (1.0, 6 * _MS))),
    # How long a producer backs off, in thousandths of the nominal time
    # (RD_KAFKA_RETRY_JITTER_PERCENT).
    "retry_jitter": Purpose(((0.0, 800), (1.0, 1200))),
    # The same before it reconnects (rd_kafka_broker_update_reconnect_backoff).
    "reconnect_jitter": Purpose(((0.0, 750), (1.0, 1500))),
    # When a client's thread first checks for timeouts; it does so every second.
    "client_scan": Purpose(((0.0, 0), (1.0, 999 * _MS))),
    # Which partition a producer's thread serves first: the number of its wake-ups.
    "client_turn": Purpose(((0.0, 0), (1.0, 100_000))),
    # Until a broker's thread that is to end has noticed. In 5 of 33 recorded failovers it was later
    # than the response after the one that listed its broker no longer.
    "client_decommission": Purpose(((0.0, 20), (0.8, 150), (1.0, 8 * _MS))),
}


class _Row:
    """A purpose's quantiles as equal buckets, for fast draws."""

    __slots__ = ("low", "span")

    def __init__(self, quantiles: Quantiles) -> None:
        edges = [_at(quantiles, i / _BUCKETS) for i in range(_BUCKETS + 1)]
        self.low = edges[:-1]
        self.span = [b - a for a, b in pairwise(edges)]

    def draw(self, bits: int) -> int:
        """A value for 64 random bits."""
        bucket = bits >> 56
        return self.low[bucket] + ((self.span[bucket] * (bits & 0xFFFFFFFF)) >> 32)


_row = lru_cache(maxsize=None)(_Row)
"""The rows of the table are the same in every world."""


def _at(quantiles: Sequence[tuple[float, int]], share: float) -> int:
    for (p0, v0), (p1, v1) in pairwise(quantiles):
        if share <= p1:
            return v0 + int((v1 - v0) * (share - p0) / (p1 - p0))
    return quantiles[-1][1]


def pace_of(boot_us: int) -> int:
    """How slow the machine is for a process with this boot time, in thousandths."""
    return boot_us * _USUAL // USUAL_BOOT_US


class _Dial:
    """What one purpose costs one actor: its position in the table, and the current
    stream."""

    __slots__ = ("paced", "restarts", "stages", "stream", "uses", "warm")

    def __init__(self, warm: _Row, stages: list[tuple[int, _Row]], *, paced: bool) -> None:
        self.warm, self.stages, self.paced = warm, stages, paced
        self.uses = 0
        self.restarts = -1
        self.stream: Stream

    def row(self) -> _Row | None:
        """The stage of cold code for this use; None when warm."""
        for until, cold in self.stages:
            if self.uses < until:
                self.uses += 1
                return cold
        self.stages = []
        return None


class Latencies:
    """Draws from the table; counts uses, because a process runs cold code only at first."""

    def __init__(self, chance: Chance, table: Table | None = None) -> None:
        self._chance = chance
        table = TABLE if table is None else table
        self._rows = {
            name: (_row(row.warm), [(uses, _row(cold)) for uses, cold in row.cold], row.paced)
            for name, row in table.items()
        }
        self._crowded = {name: row.crowded for name, row in table.items() if row.crowded}
        self._dials: dict[tuple[str, str], _Dial] = {}
        self._speeds: dict[str, int] = {}
        self._paces: dict[str, int] = {}
        self._busy: dict[str, int] = {}
        self._lateness: dict[str, int] = {}

    def at(self, now_us: int, purpose: str, actor: str) -> int:
        """As a call, but of the server that all clients share draws at about the same time are
        alike."""
        return self(purpose, actor, now_us if purpose in ALIKE else None)

    def __call__(self, purpose: str, actor: str, shared_at_us: int | None = None) -> int:
        """Microseconds of `purpose` for `actor` this time; `shared_at_us`: see `at`."""
        dial = self._dials.get((purpose, actor))
        if dial is None:
            warm, stages, paced = self._rows[purpose]
            dial = self._dials[purpose, actor] = _Dial(warm, stages, paced=paced)
        if dial.restarts != self._chance.restarts:
            dial.restarts = self._chance.restarts
            dial.stream = self._chance.stream(purpose, actor)
        bits = dial.stream.bits()
        if shared_at_us is not None and dial.uses < ALIKE[purpose]:
            shared_at_us = None
        if shared_at_us is not None:
            bits = self._beside_others(bits, shared_at_us)
        cold = dial.row() if dial.stages else None
        if cold is not None and not dial.paced and shared_at_us is None:
            return cold.draw(bits) * self._speed_of(actor) // 1000
        drawn = (cold or dial.warm).draw(bits)
        return drawn * self._paces.get(actor, _USUAL) // _USUAL if dial.paced else drawn

    def _beside_others(self, bits: int, now_us: int) -> int:
        """Replace the bucket in `bits` by one near the bucket that all clients of the server share
        at this time. Over all times each bucket is as likely as before."""
        own = bits >> 56
        if own >= _ALONE_FROM:
            return bits << 8 & _BITS
        seed = self._chance.seed_of(self._chance.segment, "zookeeper", "zk_pace")
        bucket = (mix(seed ^ mix(now_us // SHARED_US)) >> 56) + (own - _ALONE_FROM // 2) // _NEAR
        # Reflected at both ends, which keeps the distribution.
        if bucket < 0:
            bucket = -1 - bucket
        elif bucket >= _BUCKETS:
            bucket = 2 * _BUCKETS - 1 - bucket
        return bucket << 56 | bits & _BELOW_BUCKET

    def _speed_of(self, actor: str) -> int:
        speed = self._speeds.get(actor)
        if speed is None:
            pace = self._paces.get(actor, _USUAL)
            speed = self._speeds[actor] = self("speed", actor) * isqrt(pace * _USUAL) // _USUAL
        return speed

    def set_boot_time(self, actor: str, us: int) -> None:
        """The recorded boot time of a process determines how slow its machine is."""
        self._paces[actor] = pace_of(us)
        self._speeds.pop(actor, None)

    def forget(self, actor: str) -> None:
        """A process was restarted: its code is cold again, in all its threads."""
        threads = f"{actor}-", f"{actor}/"
        for key in [key for key in self._dials if f"{key[1]}/".startswith(threads)]:
            del self._dials[key]
        self._speeds.pop(actor, None)
        self._paces.pop(actor, None)

    def handover(self, producer: str) -> int:
        """How late a producer's driver is in its next round."""
        if producer not in self._lateness:
            self._lateness[producer] = self("producer_lateness", producer)
        return self._lateness[producer] + self("producer_handover", producer)

    def was_cold(self, purpose: str, actor: str) -> bool:
        """Whether the last draw was for one of a process's first uses."""
        return bool(self._dials[purpose, actor].stages)

    def is_crowded(self, purpose: str, actor: str) -> bool:
        """Whether the next draw takes longer beside other processes that do the same."""
        dial = self._dials.get((purpose, actor))
        return (0 if dial is None else dial.uses) < self._crowded.get(purpose, 0)

    @property
    def purposes(self) -> list[str]:
        return list(self._rows)

    # -- emulator.kernel.scheduler.WakeUpDelays ----------------------------------------------------

    def window(self, process: str, waiting: int) -> int:
        """How long a resumed process is sluggish: the more work has waited, the longer its handlers
        occupy the cores."""
        waiting = min(waiting, BACKLOG_MAX)
        busy_us = self._busy[process] = waiting * self("resume_backlog", process)
        return self("resume_window", process) + busy_us

    def thread(self, process: str, thread: str) -> int:
        """The delay of a thread's first step after a resume."""
        purpose = "resume_thread"
        if thread.startswith("data-plane-kafka-network-thread"):
            purpose = "resume_network"
        elif thread.startswith("kafka-scheduler"):
            purpose = "resume_scheduler"
        elif thread == "SessionTracker":
            purpose = "resume_tracker"
        us = self(purpose, f"{process}/{thread}")
        if thread.startswith("ReplicaFetcherThread"):
            us += self._busy[process] * self("resume_share", f"{process}/{thread}") // 1000
        return us

    def step(self, process: str, thread: str) -> int:
        """The cost of a thread's step while the process is sluggish."""
        return self("resume_step", f"{process}/{thread}")

    def unpark(self, process: str, thread: str) -> int:
        """From an unlock to the first step of a thread that waited for the lock."""
        return self("unpark", f"{process}/{thread}")

    async def charge(self, name: str, task: Task) -> None:
        """Charge a checkpoint of the core with its duration."""
        kernel = task.process.kernel
        await kernel.sleep(self.at(kernel.now, name, task.process.name))
