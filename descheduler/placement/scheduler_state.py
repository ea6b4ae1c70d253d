"""The extender's plug-ins and the state that they look at, fed by watches as in the extender.

It reads only: nothing is bound, claimed or written. A round decides on a fork, which is made in
steps, so that leases are renewed and probes answered meanwhile.
"""

import dataclasses
from collections.abc import Awaitable, Callable, Generator
from pathlib import Path
from typing import Final, TypeVar

from api.kubernetes import core
from descheduler.model import picture
from descheduler.placement import fork_targets, node_fragments
from descheduler.placement.settings import PlacementSettings
from extender import parts, registry
from extender.framework import pipeline
from extender.informers import event_handlers, unscheduled_feed, warmup
from extender.informers.configuration import plugin_configuration
from extender.settings import Settings as ExtenderSettings
from extender.state import cluster_state, ledger
from kube.client import client
from kube.controllers import recorder
from kube.informers import informer_set, reflector, shared_store
from process.configuration import settings as configuration
from process.configuration import switches
from process.runtime import clock as clocks
from process.runtime import metrics, supervise

T = TypeVar("T")

_PAGE: Final = 250
"""Objects of one page of a list, which is decoded in one go."""
_ROWS: Final = 256
"""Nodes that are forked in one step."""
_LEFT_OUT: Final = frozenset({fork_targets.LEFT_OUT})


@dataclasses.dataclass(frozen=True, slots=True)
class Pods:
    """A watch of all pods that the process has already."""

    store: shared_store.SharedStore[core.Pod]
    """It has not been started yet."""
    listed: Callable[[], Awaitable[None]]
    """Returns once all pods have been listed."""


@dataclasses.dataclass(frozen=True, slots=True)
class Fork:
    """What one round decides on; nothing that is done to it comes back."""

    plugins: pipeline.Pipeline
    cluster: cluster_state.ClusterState
    fragments: node_fragments.NodeFragments
    """Of nodes as they were when the fork was made, or as moves have left them when asked later."""

    def targets(self, seen: picture.Picture) -> fork_targets.ForkTargets:
        """Return where pods of a picture of the same moment would be placed."""
        return fork_targets.ForkTargets(self.plugins, self.cluster, seen)


class _Silent:
    """Posts nothing: the extender itself tells what is wrong with its configuration."""

    def event(
        self,
        regarding: recorder.Regarding,
        kind: recorder.Kind,
        reason: str,
        note: str,
        action: str = "",
    ) -> bool:
        """Drop an event."""
        del regarding, kind, reason, note, action
        return False


class SchedulerState:
    """What the scheduler would decide by, kept current."""

    def __init__(
        self,
        settings: PlacementSettings,
        api: client.Client,
        clock: clocks.Clock,
        namespace: str,
        pods: Pods | None = None,
    ) -> None:
        """Without `pods` a watch of them is added.

        `namespace` is that of the ConfigMaps, in which the extender runs as well.
        """
        chosen = _extender(settings.extender_settings, namespace)
        # What plug-ins count is exported by the extender.
        unseen = metrics.Registry()
        self._clock = clock
        self._deciding = parts.build(chosen, unseen, registry.PLUGINS)
        projector = self._deciding.projector(None)
        self.members = informer_set.InformerSet(api, clock, pace=reflector.Pace(page=_PAGE))
        self._listed = pods.listed if pods is not None else self.members.synced
        view = pods.store.view(projector.pod) if pods is not None else None
        reader = self._deciding.reader
        watched = event_handlers.add(self.members, projector, reader, namespace, view)
        books = ledger.Ledger(self._deciding.cluster)
        event_handlers.connect(watched, books, switches.Switches("extender"), clock)
        self._feed = unscheduled_feed.UnscheduledFeed(books, watched.pods)
        self._warmup = warmup.Warmup(self._deciding.cluster, self.members, clock, self._is_complete)
        self._follow_arguments(chosen, watched, unseen)
        # Before the first pod is listed.
        self._feed.catch_up(self._deciding.reload.kinds())
        self._warmup.follow(watched)

    def _follow_arguments(
        self,
        chosen: ExtenderSettings,
        watched: event_handlers.Informers,
        unseen: metrics.Registry,
    ) -> None:
        reload = self._deciding.reload
        wanted = plugin_configuration.PluginConfiguration(
            chosen.plugins, _Silent(), unseen, reload.want
        )
        watched.arguments.listen(lambda change: wanted.take(change.new))
        reload.followers.append(self._warmup.wake)

    def _is_complete(self) -> bool:
        """Let plug-ins that were prepared judge; return whether nothing is left to be told."""
        reload = self._deciding.reload
        is_told = self._feed.catch_up(reload.kinds())
        if is_told:
            reload.finish()
        return is_told

    def start(self, supervisor: supervise.Supervisor) -> None:
        """Start to list and watch, and to keep the figures of nodes current."""
        self.members.start(supervisor)
        supervisor.start("scheduler-state", self._run)

    async def _run(self) -> None:
        await self._listed()
        await self._warmup.run()

    def health(self) -> str | None:
        """Return why no target can be found at present, None where it can."""
        return self.members.health() or self._warmup.health()

    async def caught_up(self) -> None:
        """Wait until plug-ins know everything that the stores hold, where no watch tells them."""
        while not self._is_complete():
            await self._clock.sleep(0)

    def fragments(self) -> node_fragments.NodeFragments:
        """Return what is free of devices and CPUs now; to be read before anything else happens."""
        return node_fragments.NodeFragments(self._deciding.cluster)

    async def forked(self) -> Fork:
        """Return a fork of the state as it is at the end."""
        cluster = self._deciding.cluster
        # Figures that are missing are computed here, or every fork would compute them again.
        while cluster.refresh(_ROWS):
            await self._clock.sleep(0)
        fork = await self._made(cluster.forking(_ROWS, _LEFT_OUT))
        return Fork(self._deciding.line, fork, node_fragments.NodeFragments(fork))

    async def _made(self, steps: Generator[None, None, T]) -> T:
        while True:
            try:
                next(steps)
            except StopIteration as end:
                made: T = end.value
                return made
            await self._clock.sleep(0)


def _extender(file: Path | None, namespace: str) -> ExtenderSettings:
    """Return the settings of the extender; a SettingsError names what is wrong with the file.

    Where the file names no namespace, the extender runs in that of the descheduler.
    """
    found = ExtenderSettings()
    if file is not None:
        found = configuration.load(
            ExtenderSettings, file=file, environ={}, prefix="KOORD_EXTENDER", flags=()
        )
    if "namespace" in found.model_fields_set:
        return found
    return found.model_copy(update={"namespace": namespace})
