"""A cluster of broker processes that stays up until a request ends it.

It has the same world, trace and directory as a scenario's run; requests arrive through the run's
control socket. Owns the current faults and when they end. It must not know how a request is entered
or shown.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import TypeVar

import msgspec

from emulator.kafka.protocol.messages import MetadataResponse
from emulator.kernel.scheduler import Callback
from emulator.runs.control import (
    Apply,
    BrokerStatus,
    ClusterStatus,
    ControlRequest,
    ControlResponse,
    ControlSocket,
    Down,
    Heal,
)
from emulator.runs.play import Outcome, Run
from emulator.runs.session import Played, Request, WrittenRun
from emulator.scenario.actions.admin import AdminRequest
from emulator.scenario.actions.base import Action
from emulator.scenario.actions.life import EndsProcess
from emulator.scenario.errors import UserError
from emulator.scenario.load import LoadedScenario
from emulator.scenario.schema import Step
from emulator.scenario.standing import chosen_to_heal, standing_after, words_of
from emulator.scenario.typed import cluster_of, read_typed
from emulator.scenario.units import show_us
from emulator.scenario.written import write_scenario
from emulator.trace.events import ActionReturned, AnyEvent
from emulator.trace.values import ProcessState
from emulator.worlds.clients.blocking_client import Unreachable, metadata
from emulator.worlds.processes.world import ProcessWorld

T = TypeVar("T")
_SLICE_US = 50_000
_RESPONSE_S = 30.0
"""How long to wait for the response to a client's request; the client continues after that."""
_METADATA_S = 1.0
_ENDING = "the cluster is about to end"

OnLine = Callable[[str], object]


class ClusterSession:
    """The cluster of one run. `respond` may be called from any thread, everything else only from
    the thread that made the session."""

    def __init__(
        self, scenario: LoadedScenario, world: ProcessWorld, run: Path, on_line: OnLine
    ) -> None:
        """`on_line` is called with a line for every action and every change of a process's
        state."""
        self.steps: list[Step] = []
        self._scenario, self._world, self._folder, self._on_line = scenario, world, run, on_line
        self._run = Run(world)
        self._jobs: deque[tuple[Callable[[], object], Future[object]]] = deque()
        self._endings: list[tuple[Action, Callback]] = []
        self._responses: dict[int, Future[str]] = {}
        self._states: dict[int, ProcessState] = {}
        self._is_ending = False
        self._ended: Future[str] = Future()
        world.sink.listen(self._on_event)

    @property
    def now_us(self) -> int:
        """Microseconds since the cluster was up."""
        return self._world.kernel.now - self._run.up_us

    def bring_up(self) -> ClusterStatus:
        """Return when every broker is registered and its metadata contains all brokers and a
        controller."""
        self._run.bring_up(together=True)
        self._run.run_to(0)
        self._states = self._process_states()
        return self._status(None)

    def serve(self) -> None:
        """Return when the cluster is to end."""
        kernel = self._world.kernel
        while not self._is_ending:
            kernel.run(kernel.now + _SLICE_US)
            while self._jobs:
                job, result = self._jobs.popleft()
                try:
                    result.set_result(job())
                except BaseException as error:
                    # The sender gets the error. A KeyboardInterrupt or exit must also end this
                    # loop.
                    result.set_exception(error)
                    if not isinstance(error, Exception):
                        raise
            states = self._process_states()
            for broker in [b for b, state in states.items() if state != self._states[b]]:
                self._on_line(f"{show_us(self.now_us)}  broker {broker} {states[broker]}")
            self._states = states

    def stop_serving(self) -> None:
        """Fail all requests that are not done yet."""
        self._is_ending = True
        with suppress(IndexError):  # its sender may remove it at the same time
            while True:
                self._jobs.popleft()[1].set_exception(UserError(_ENDING))
        while self._responses:
            self._responses.popitem()[1].set_exception(UserError(_ENDING))

    def confirm_end(self, text: str) -> None:
        """Tell the sender of the request to end the cluster that it is down."""
        self._ended.set_result(text)

    def abandon(self) -> None:
        """Fail all requests after an unexpected end, so that no sender waits for ever."""
        self.stop_serving()
        if not self._ended.done():
            self._ended.set_exception(UserError("the cluster is down; its run was not completed"))

    # -- requests ----------------------------------------------------------------------------------

    def respond(self, request: ControlRequest) -> ControlResponse:
        """Execute a request. Raises UserError."""
        match request:
            case Down():
                self._on_own_thread(self._refuse_jobs).result()
                return ControlResponse(self._ended.result())
            case Apply(words, for_us):
                return ControlResponse(self._do(words, for_us))
            case Heal(words):
                healed = self._on_own_thread(partial(self._heal, words)).result()
                return ControlResponse(f"healed: {'; '.join(map(words_of, healed))}")
        status = self._on_own_thread(partial(self._status, self._controller())).result()
        return ControlResponse(status=status)

    def _on_own_thread(self, job: Callable[[], T]) -> Future[T]:
        result: Future[T] = Future()
        self._jobs.append((job, result))  # type: ignore[arg-type]
        # Check only after the job is queued: a job queued before the end began is refused by
        # stop_serving.
        if self._is_ending:
            with suppress(ValueError):
                self._jobs.remove((job, result))  # type: ignore[arg-type]
                raise UserError(_ENDING)
        self._world.clock.put(self._world.kernel.stop)
        return result

    def _refuse_jobs(self) -> None:
        self._is_ending = True

    def _do(self, words: list[str], for_us: int) -> str:
        cluster = cluster_of(self._scenario)
        # The topics may come from our actions or from other clients.
        with suppress(Unreachable):
            for state in self._metadata().partitions:
                topic, number = state.partition.topic, state.partition.partition
                cluster.topics[topic] = max(cluster.topics.get(topic, 0), number + 1)
        action = read_typed(words, cluster)
        ending = action.ending() if for_us else None
        if for_us and ending is None:
            raise UserError(f"{action.name}: nothing undoes it; leave out --for")
        response = self._on_own_thread(partial(self._apply, action, ending, for_us)).result()
        text = words_of(action) if ending is None else f"{words_of(action)} for {show_us(for_us)}"
        if response is None:
            return text
        try:
            error = response.result(_RESPONSE_S)
        except TimeoutError:
            return f"{text}: no response for {_RESPONSE_S:g} s; the client tries on"
        if error != "NONE":
            raise UserError(f"{action.name}: {error}")
        return text

    def _apply(self, action: Action, ending: Action | None, for_us: int) -> Future[str] | None:
        """Return the future response if a client sends a request. UserError."""
        if isinstance(action, EndsProcess) and self._process_states()[action.broker] == "dead":
            raise UserError(f"{action.name}: broker {action.broker} does not run")
        number = self._world.sink.next_seq
        self._run.apply(action)
        self.steps.append(Step(self.now_us, action, fault=True))
        self._on_line(f"{show_us(self.now_us)}  {words_of(action)}")
        for one in [one for one in self._endings if action.undoes(one[0])]:
            # A repeated fault must not end at the time of the first one.
            one[1].cancel()
            self._endings.remove(one)
        if ending is not None:
            lane = self._world.kernel.world.lane("world")
            end = partial(self._end_of, ending)
            self._endings.append((action, lane.call_later(for_us, end)))
        if isinstance(action, AdminRequest):
            self._responses[number] = Future()
            return self._responses[number]
        return None

    def _end_of(self, ending: Action) -> None:
        self._jobs.append((partial(self._apply, ending, None, 0), Future()))
        self._world.kernel.stop()

    def _heal(self, words: list[str]) -> list[Action]:
        standing = standing_after(step.action for step in self.steps)
        chosen = chosen_to_heal(words, standing)
        for one in chosen:
            healed = one.healed()
            assert healed is not None, "what stands can be healed"
            self._apply(healed, None, 0)
        return chosen

    def _on_event(self, event: AnyEvent) -> None:
        if isinstance(event, ActionReturned) and event.of in self._responses:
            self._responses.pop(event.of).set_result(event.result)

    # -- status ------------------------------------------------------------------------------------

    def _process_states(self) -> dict[int, ProcessState]:
        return {broker: host.state for broker, host in self._world.cluster.hosts.items()}

    def _metadata(self) -> MetadataResponse:
        up = [self._world.addresses[b] for b, state in self._states.items() if state == "up"]
        return metadata(up, _METADATA_S)

    def _controller(self) -> int | None:
        with suppress(Unreachable):
            controller = self._metadata().controller_id
            return controller if controller >= 0 else None
        return None

    def _status(self, controller: int | None) -> ClusterStatus:
        world = self._world
        addresses = {b: "{}:{}".format(*where) for b, where in world.addresses.items()}
        states = self._process_states()
        return ClusterStatus(
            run=str(self._folder),
            up_s=self.now_us / 1e6,
            zookeeper=str(world.site.zookeeper),
            bootstrap=",".join(addresses.values()),
            controller=controller,
            brokers=[
                BrokerStatus(broker, str(world.host_of(broker)), addresses[broker], state)
                for broker, state in sorted(states.items())
            ],
            faults=[words_of(one) for one in standing_after(s.action for s in self.steps)],
        )


class ClusterListener(msgspec.Struct, frozen=True):
    """The display of a cluster: one step before it is up, then the ready cluster, then a line for
    each action and change of a process."""

    on_step: OnLine
    on_ready: Callable[[ClusterStatus], object]
    on_line: OnLine


def run_cluster(request: Request, shown: ClusterListener) -> Played:
    """Bring a cluster up, serves requests until one ends it (or KeyboardInterrupt does), and
    writes its run. Exceptions are raised as PlayFailed. In any case no process of it keeps
    running."""
    scenario, began_s = request.scenario, time.monotonic()
    with WrittenRun(request) as written, ExitStack() as open_:
        folder = written.directory.path
        try:
            written.begin()
            data = written.directory.zookeeper
            world = ProcessWorld(
                scenario, request.seed, written.sink, data, request.target, request.read_kafka
            )
            session = ClusterSession(scenario, world, folder, shown.on_line)
            with world:
                try:
                    shown.on_step("ZooKeeper serves; starting brokers")
                    ready = session.bring_up()
                    open_.enter_context(ControlSocket(folder, session.respond))
                    open_.callback(session.abandon)  # before the socket, which waits for responses
                    shown.on_ready(ready)
                    session.serve()
                except KeyboardInterrupt:
                    pass
                finally:
                    session.stop_serving()
                shown.on_step("ending brokers and ZooKeeper")
            virtual_us, wall_ms = world.kernel.now, int((time.monotonic() - began_s) * 1000)
            played = written.finish(
                Outcome(virtual_us, wall_ms, world.kernel.late_us_max, interrupted=False)
            )
            # The same run with its faults as a scenario, which can be played again, also in virtual
            # time.
            text = write_scenario(
                scenario, session.steps, max(session.now_us, 0), settings=scenario.settings
            )
            written.directory.rewrite_scenario(text)
            broken = ", ".join(dict.fromkeys(one.invariant for one in played.broken))
            session.confirm_end(
                f"run directory  {folder}" + (f"; violated: {broken}" if broken else "")
            )
            return played
        except Exception as error:
            raise written.fail() from error
