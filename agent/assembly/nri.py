"""The plug-in of the container runtime: its thread, what it answers by, and what it shows."""

import asyncio
import contextlib
import pathlib
import sys
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Final, TypeVarTuple

import msgspec

from agent import settings as agent_settings
from agent.apply import deliveries
from agent.decide import frozen_look, hook_rules
from agent.devices import rdma_nodes
from agent.informers import pod_source
from agent.loop import births, ticks
from agent.model import edits, live_switches
from agent.nri import link, session
from agent.report import nri_figures
from agent.serve import container_events, snapshots
from process.runtime import clock as clocks

if TYPE_CHECKING:
    from agent.serve import hook_server

GPU_GATE, RDMA_GATE = "GPUEnvInject", "RDMADeviceInject"
ABSENT_SECONDS: Final = 10.0
"""Time between two looks for a socket that is not there."""
MOST_UNKNOWN: Final = 4096
SWITCH_SECONDS: Final = 0.0005
"""After so long the interpreter lets the thread that answers go on while a tick is computed.

An answer needs the interpreter some five times, and a runtime waits for it.
"""
_Arguments = TypeVarTuple("_Arguments")


class Place(msgspec.Struct, frozen=True):
    """Where the runtime is and where the agent keeps its notes."""

    settings: agent_settings.NriSettings
    hooks: agent_settings.HookServerSettings
    host: agent_settings.HostSettings
    boot_id: str
    gates: Collection[str]


class Plugin:
    """One plug-in for as long as the agent runs."""

    def __init__(
        self,
        place: Place,
        loop: ticks.Ticks,
        pods: pod_source.Source,
        clock: clocks.Clock,
        figures: nri_figures.Figures,
    ) -> None:
        self._place, self._loop, self._pods, self._clock = place, loop, pods, clock
        kept = deliveries.Deliveries(place.host.state, place.boot_id)
        self.events, self.link = _asked_by(place, kept, clock)
        self._freezer = snapshots.Freezer(self._devices)
        self._adapters = rdma_nodes.Nodes(str(place.host.sys))
        self._started: dict[str, None] = {}
        self._births = loop.births = births.Births(kept, self._frozen)
        self._asked = False
        self._hidden = ""
        pods.listed = self._listed
        figures.show(lambda: self._asked and not self.link.problem, lambda: self._asked)
        self.events.counted, self.events.failed = figures.counted, figures.failed
        self.events.stood_down = figures.stood_down
        self.link.answered = figures.answered

    async def run(self) -> None:
        """Register once the runtime's socket is there; leave the runtime in the end.

        The task ends before the node is handed over, so that nothing is delivered after that.
        """
        socket = self._place.settings.socket
        while not (self._place.hooks.enable or self._is_there(socket)):
            await self._clock.sleep(ABSENT_SECONDS)
        turn = asyncio.get_running_loop()
        self.events.unknown = self.events.started = _in_loop(turn, self._begins)
        self.events.starts.write = _in_loop(turn, self._write_first)
        self._asked = True
        before = sys.getswitchinterval()
        sys.setswitchinterval(SWITCH_SECONDS)
        self.link.start()
        try:
            await turn.create_future()
        finally:
            sys.setswitchinterval(before)
            self.events.snapshot = snapshots.Snapshot()
            self.link.close()

    def _is_there(self, socket: pathlib.Path) -> bool:
        """Whether the runtime offers its socket; one that may not be looked at is a problem."""
        self._hidden = ""
        try:
            return socket.exists()
        except OSError as error:
            # Such as a folder that only root may enter: the rest of the agent goes on without it.
            self._hidden = f"{socket}: {error.strerror}"
            return False

    @property
    def problem(self) -> str:
        """Why containers do not start with their values, empty where they do or no runtime asks."""
        if not self._asked:
            return self._hidden
        return self.link.problem or self.events.problem or self._births.problem

    def _frozen(self, told: frozen_look.Frozen | None) -> None:
        """Answer by the rules of a tick from now on."""
        mode = live_switches.Mode
        if told is None or told.live.strategies.get(live_switches.NRI, mode.ENFORCE) is not (
            mode.ENFORCE
        ):
            self.events.snapshot = snapshots.Snapshot()
            return
        frozen = snapshots.with_pods(self._freezer.freeze(told), self._pods.pods)
        if self._place.hooks.enable:
            # The hook API has no field for resctrl groups.
            frozen = msgspec.structs.replace(frozen, resctrl_groups=frozenset())
        self.events.snapshot = frozen

    def _devices(self) -> hook_rules.Devices:
        gates = self._place.gates
        return hook_rules.Devices(
            GPU_GATE in gates,
            self._adapters.rule(self._clock.monotonic()) if RDMA_GATE in gates else None,
        )

    def _begins(self, uid: str) -> None:
        """Take that a pod starts; one that is not known yet is asked for at once."""
        self._add()
        if uid in self.events.snapshot.pods:
            self._write(uid)
            return
        # Some are gone before any list has them: the oldest make room for those that come.
        self._started[uid] = None
        if len(self._started) > MOST_UNKNOWN:
            del self._started[next(iter(self._started))]
        self._pods.look_now()

    def _listed(self) -> None:
        """Take a new list of pods."""
        self._add()
        for uid in tuple(self._started):
            if uid in self.events.snapshot.pods:
                del self._started[uid]
                self._write(uid)
        if not self.events.snapshot.rules.stages:
            self._started.clear()

    def _add(self) -> None:
        before = self.events.snapshot
        now = snapshots.with_pods(before, self._pods.pods)
        if now is not before:
            self.events.snapshot = now

    def _write(self, uid: str) -> None:
        """Write what the cgroup of a pod shall have, which no runtime sets."""
        now = self.events.snapshot
        self._loop.write_now(self.events.of_pod(now.pods[uid], now))
        self.events.starts.pod_written(uid)

    def _write_first(self, wanted: Sequence[edits.Edit], done: Callable[[], None]) -> None:
        """Write for a container that waits for it, unless nothing may be set any more."""
        if self.events.snapshot.rules.stages:
            self._loop.write_now(wanted)
        done()


def _asked_by(
    place: Place, kept: deliveries.Deliveries, clock: clocks.Clock
) -> "tuple[container_events.Events, link.Link | hook_server.HookServer]":
    """Return what answers, and what asks it: the runtime by NRI, or a CRI proxy."""
    if place.hooks.enable:
        from agent.serve import hook_server  # noqa: PLC0415 - 3.6 MiB, few runtimes lack NRI

        unnamed = hook_server.Unnamed(kept.add)
        events = container_events.Events(clock.monotonic, unnamed.add)
        events.has_cgroup = False
        return events, hook_server.HookServer(_served(place.hooks), events, unnamed)
    events, chosen = container_events.Events(clock.monotonic, kept.add), place.settings

    def begin() -> session.Session:
        name, index = chosen.plugin_name, chosen.plugin_index
        return session.Session(name, index, container_events.EVENTS, events)

    return events, link.Link(str(chosen.socket), begin)


def _served(chosen: agent_settings.HookServerSettings) -> "hook_server.Place":
    from agent.serve import hook_server  # noqa: PLC0415 - 3.6 MiB, as above

    return hook_server.Place(
        chosen.socket,
        chosen.host_socket,
        chosen.folder,
        chosen.failure_policy,
        fail_on_problem=chosen.plugin_failure_policy == "Fail",
        disabled=frozenset(chosen.disable_stages),
        runtime=chosen.runtime,
    )


def _in_loop(
    turn: asyncio.AbstractEventLoop, function: Callable[[*_Arguments], None]
) -> Callable[[*_Arguments], None]:
    """Return a function that other threads call and the loop runs; nothing once it has closed."""

    def call(*arguments: *_Arguments) -> None:
        with contextlib.suppress(RuntimeError):
            turn.call_soon_threadsafe(function, *arguments)

    return call
