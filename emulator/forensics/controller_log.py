"""Sentences of `controller.log`: controller elections, and the brokers that it finds.

One function per sentence, in the spellings of 0.8.2 to 3.9 (KafkaController.scala,
ReplicaStateMachine.scala). It must not know clocks or other brokers' logs.
"""

from __future__ import annotations

import re

from emulator.forensics.account import Account, known, sentence
from emulator.forensics.log_fields import numbers
from emulator.trace import events as e

CONTROLLER = "kafka.controller"


@sentence(
    CONTROLLER,
    r"(?:[Ii]ncremented epoch|Epoch incremented) to (?P<epoch>\d+)"
    r"(?: and epoch zk version is now (?P<version>\d+))?",
)
def _elected(account: Account, match: re.Match[str]) -> None:
    epoch = int(match["epoch"])
    account.controller_epoch = epoch
    account.emit(
        e.ControllerElected, controller_epoch=epoch, epoch_zk_version=int(match["version"] or -1)
    )


@sentence(CONTROLLER, r"Resigned$|(Controller|Broker) \d+ resigned as the controller")
def _resigned(account: Account, match: re.Match[str]) -> None:
    account.emit(e.ControllerResigned, controller_epoch=account.controller_epoch)


@sentence(
    CONTROLLER,
    r"Newly added brokers: (?P<added>[\d, ]*), deleted brokers: (?P<deleted>[\d, ]*)"
    r"(?:, bounced brokers: (?P<bounced>[\d, ]*))?, all live brokers: (?P<live>[\d, ]*)",
)
def _broker_change(account: Account, match: re.Match[str]) -> None:
    account.emit(
        e.BrokerChange,
        added=numbers(match["added"]),
        deleted=numbers(match["deleted"]),
        bounced=numbers(match["bounced"] or ""),
        live=numbers(match["live"]),
    )


known(
    CONTROLLER,
    r"Starting$|Shutting down|Shutdown completed|Stopped",
    r"Register(ed|ing)? |Unregister",
    r"Deleting (log dir event|isr change) notifications",
    r"Initializ(ing|ed) |Triggering (online|offline)|Started (replica|partition) state machine",
    r"trying to connect to broker|connected to .* for sending state change requests",
    r"Current(ly)? (active|shutting|list)|Fetching topic deletions|List of topics",
    r"Sending (update metadata|UpdateMetadata|MetadataRequest)",
    r"Ready to serve|Starting the controller scheduler|Resigning",
    r"Partitions (undergoing|that completed)|(Skipping|Resuming) preferred replica election",
    r"Starting (replica leader|preferred replica leader) election|Removing partition",
    r"New (broker startup|partition creation|topics)|Broker failure callback",
    r"Updated broker epochs cache|Updat(ed|ing) (assignment|leader epoch)|Successfully updated",
    r"Updating ISRs for partitions|ISR for partition .* updated to",
    r"Target replicas .* caught up|being reassigned",
    r"successfully elected as the controller$|Starting become controller|Incrementing controller",
    r"Reading controller epoch|Partitions already reassigned|Resuming reassignment",
    r"Invoking state change to|New topic creation callback|Live assigned replicas",
    r"Removed .* from list of shutting down|Selected? (new )?leader|Some broker in ISR is alive",
    r"After leader election|Removing replica|Cannot remove replica|New leader and ISR",
    r"[Tt]he stop replica request|Not sending request|connection to broker .* was unsuccessful",
    r"Controller start(ing up|up complete)|starting become controller|ready to serve as the new",
    r"send-thread\], Starting|(change|election) listener fired|is not the preferred replica",
    r"completed preferred replica leader election",
    r"has been elected as the controller|Creating FeatureZNode|Processing automatic preferred",
    r"was elected as controller instead of broker|All (shutting down brokers|leaders)|Live brokers",
    r"Delete topics? (listener|callback)|Starting topic deletion|Handling deletion for topics",
    r"Deletion (of topic|successfully completed|for replicas)",
    r"fails to send (a )?request|shutdownInitiated latch|Ignoring AlterIsr due to stale",
)
