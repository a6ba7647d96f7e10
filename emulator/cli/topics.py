"""`isr topics`: topics of brokers as processes, through the Admin API.

Owns the options and the table. The requests use Kafka's protocol, so they work with any broker.
"""

from __future__ import annotations

from typing import Annotated

import typer

from emulator.cli.broker import host_and_port
from emulator.cli.parts.options import print_json
from emulator.kafka.model.errors import Errors
from emulator.kafka.protocol.messages import CreateTopicsRequest, DeleteTopicsRequest
from emulator.scenario.errors import UserError
from emulator.worlds.clients.blocking_client import Unreachable, ask_controller, metadata

app = typer.Typer(help="Create, list and delete topics of running brokers (isr broker).")
Bootstrap = Annotated[
    str, typer.Option(metavar="HOST:PORT[,HOST:PORT...]", help="Brokers to contact first.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
TIMEOUT_S = 30.0
FIRST = "127.0.0.1:9092"


@app.command()
def create(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="Name of the topic.")],
    bootstrap: Bootstrap = FIRST,
    partitions: Annotated[
        int, typer.Option(min=-1, metavar="N", help="Partitions; -1: the broker's default.")
    ] = -1,
    replication_factor: Annotated[
        int,
        typer.Option(min=-1, metavar="N", help="Replicas per partition; -1: the broker's default."),
    ] = -1,
    assignment: Annotated[
        str | None,
        typer.Option(
            metavar="1:2:3,2:3:1", help="Replicas of each partition, preferred leader first."
        ),
    ] = None,
    config: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="Topic configuration; may be repeated."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Create a topic, and wait until the controller has elected its leaders.

    \b
      isr topics create orders --partitions 3 --replication-factor 2
      isr topics create clicks --assignment 1:2:3,2:3:1
    """
    request = CreateTopicsRequest(
        topic,
        () if assignment is None else placed(assignment),
        tuple(_setting(text) for text in config or ()),
        num_partitions=partitions,
        replication_factor=replication_factor,
    )
    _request(bootstrap, request, "created", as_json=as_json)


@app.command()
def delete(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="Name of the topic.")],
    bootstrap: Bootstrap = FIRST,
    as_json: AsJson = False,
) -> None:
    """Delete a topic, and wait until the controller has removed it.

    \b
      isr topics delete orders --bootstrap 127.0.0.1:9092
    """
    _request(bootstrap, DeleteTopicsRequest(topic), "deleted", as_json=as_json)


@app.command(name="list")
def list_(bootstrap: Bootstrap = FIRST, as_json: AsJson = False) -> None:
    """List partitions from the metadata cache of one broker, stale or not.

    \b
      isr topics list --bootstrap 127.0.0.1:9092
    """
    try:
        known = metadata(_servers(bootstrap), TIMEOUT_S)
    except Unreachable as error:
        raise _no_answer(error) from None
    rows = [
        {
            "topic": s.partition.topic,
            "partition": s.partition.partition,
            "leader": s.leader,
            "leader_epoch": s.leader_epoch,
            "replicas": s.replicas,
            "isr": s.isr,
        }
        for s in sorted(known.partitions, key=lambda s: s.partition)
    ]
    if as_json:
        brokers = [b.broker for b in known.brokers]
        response = {"controller": known.controller_id, "brokers": brokers, "partitions": rows}
        print_json(response)
        return
    typer.echo(f"controller {known.controller_id}")
    for s in sorted(known.partitions, key=lambda s: s.partition):
        name = f"{s.partition.topic}-{s.partition.partition}"
        typer.echo(f"{name}  leader {s.leader}  replicas {list(s.replicas)}  isr {list(s.isr)}")


def placed(text: str) -> tuple[tuple[int, ...], ...]:
    """Parse `1:2:3,2:3:1`. Raises UserError."""
    try:
        return tuple(tuple(int(b) for b in part.split(":")) for part in text.split(","))
    except ValueError:
        raise UserError(f"--assignment {text}: write 1:2:3,2:3:1") from None


def _setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise UserError(f"--config {text}: write KEY=VALUE")
    return key, value


def _servers(bootstrap: str) -> list[tuple[str, int]]:
    return [host_and_port("--bootstrap", part) for part in bootstrap.split(",")]


def _no_answer(error: Unreachable) -> UserError:
    return UserError(f"no broker responded: {error}")


def _request(
    bootstrap: str, request: CreateTopicsRequest | DeleteTopicsRequest, done: str, *, as_json: bool
) -> None:
    """Send a request to the controller, and print its response."""
    try:
        response = ask_controller(_servers(bootstrap), request, TIMEOUT_S)
    except Unreachable as error:
        raise _no_answer(error) from None
    topic, name, message = request.topic, response.error.name, response.message
    if as_json:
        print_json({"topic": topic, "result": name})
    elif response.error is Errors.NONE:
        typer.echo(f"{topic} {done}")
    if response.error is not Errors.NONE:
        raise UserError(f"{topic}: {name}{f' ({message})' * (message not in ('', name))}")
