"""One look at the node: readings become samples, samples become a NodeState."""

import functools
import logging
from collections.abc import Sequence

import msgspec

from agent.host import file_descriptors, files
from agent.model import cgroup_layout, host_applications, state
from agent.model import strategy_settings as enforcement
from agent.model.cpus import kubelet_cpu_manager
from agent.observe import collectors as collecting
from agent.observe import controls, machine_layout, pod_states, sampler
from agent.observe.cgroups import cgroup_files
from agent.observe.node import procfs
from agent.store import time_series
from api.koordinator.settings import strategies
from api.kubernetes import core

_logger = logging.getLogger(__name__)
LONGEST_GAP = 20.0
FRESH_TICKS = 2.0
LAYOUT_SECONDS = 10.0
"""How often it is looked whether the groups of pods still lie where they did."""


class Roots(msgspec.Struct, frozen=True):
    """Where this host's files lie."""

    proc: str = "/proc"
    sys: str = "/sys"
    cgroup: str = "/sys/fs/cgroup"
    kubelet_root: str = ""
    """The group that holds those of pods, as the kubelet's `--cgroup-root` names it."""
    terway: str = ""
    """The folder of the files that Terway reads; empty where not set."""
    mounting: bool = False
    """Whether resctrl may be mounted."""
    huge_pages: bool = False
    """Whether the huge pages of each NUMA node are asked for."""


class Known(msgspec.Struct, frozen=True):
    """What watches and the kubelet say about this node at the moment of a tick."""

    node: core.Node | None = None
    thresholds: state.Thresholds | None = None
    pods: Sequence[core.Pod] | None = None
    """None before the kubelet has answered for the first time."""
    host_applications: Sequence[strategies.HostApplication] = ()
    enforced: enforcement.Strategies | None = None
    """What is enforced beside the thresholds; None reads nothing that only enforcement needs."""
    kubelet: kubelet_cpu_manager.Told = kubelet_cpu_manager.UNASKED
    """How the kubelet hands out cpus."""
    heard: bool = True
    """Whether the API server has said that there are no thresholds, where there are none."""
    remembered: bool = False
    """Whether the pods are those that an earlier agent knew: no source has named them since."""


class Moment(msgspec.Struct, frozen=True):
    """The time of a tick."""

    wall: float
    monotonic: float


class Observer:
    """Reads the host once per tick and keeps the samples that reports are made of."""

    def __init__(
        self,
        roots: Roots,
        tick_seconds: float,
        collectors: Sequence[collecting.Collector] = (),
        samples: time_series.Histories | None = None,
    ) -> None:
        """`samples` takes what is measured; in memory where it is not given."""
        self.roots = roots
        self.layout: cgroup_layout.Layout | None = None
        self._groups: cgroup_files.Cgroups | None = None
        self.watching_pressure = False
        """Whether a decision asks how long online tasks wait."""
        self.watching_network = False
        """Whether a decision asks through what this node talks to others."""
        gap = max(LONGEST_GAP, 3 * tick_seconds)
        self._kept = files.Kept(file_descriptors.share(file_descriptors.limit()).kept)
        self.figures = sampler.Sampler(self._kept, gap, FRESH_TICKS * tick_seconds, samples)
        self._proc = procfs.Proc(roots.proc, self._kept)
        self._site = machine_layout.Site(
            roots.sys, roots.proc, self._kept, huge_pages=roots.huge_pages
        )
        place = controls.Place(roots.proc, roots.sys, mounting=roots.mounting)
        self._controls = controls.Controls(place, self._kept)
        self._enforced: enforcement.Strategies | None = None
        self._collectors = collecting.Collectors(collectors)
        self._disks: dict[str, str] = {}
        self._look_again = 0.0
        self._pods = pod_states.PodStates(self.figures, self._controls)

    @property
    def samples(self) -> time_series.Histories:
        """Everything that was sampled and is not too old."""
        return self.figures.samples

    def reread(self, path: str) -> bytes:
        """Read a file anew that a look may have read before; it is cheaper then."""
        return self._kept.reread(path)

    def close(self) -> None:
        """Close every file that is open."""
        self._collectors.close()
        self._kept.close()

    def observe(self, known: Known, now: Moment) -> state.NodeState:
        """Read everything once; what cannot be read is missing from the picture and named."""
        self.figures.begin(settled=known.pods is not None and not known.remembered)
        self._enforced = known.enforced
        at = now.monotonic
        cgroups = self._cgroups(at)
        self.figures.node(self._proc, at)
        stands = self._stands(known, at)
        host = pod_states.Host(self.layout, cgroups, stands.bindings, known.enforced)
        pods = self._pods.look(known.pods or (), host, at)
        if cgroups is not None:
            cgroups.forget(pods)
        applications = self._host_applications(known, cgroups, at)
        if self.figures.settled:
            used = [state.Usage(one.cpu, one.memory) for one in applications]
            self.figures.system([*(pod.usage for pod in pods), *used], at)
        self._collect(pods, applications, stands.machine.processors, at)
        if self._kept.problem:
            self.figures.problem("open files", self._kept.problem)
        best_effort = self._best_effort(cgroups) if known.thresholds else None
        picture = state.NodeState(
            at=now.wall,
            node=known.node,
            thresholds=known.thresholds,
            usage=self.figures.latest(sampler.NODE, at),
            system=self.figures.latest(sampler.SYSTEM, at),
            pods=pods,
            host_applications=applications,
            best_effort=best_effort,
            processors=stands.machine.processors,
            numa=stands.machine.nodes,
            processor_info=stands.machine.info,
            kubelet=stands.kubelet,
            pods_known=known.pods is not None and not known.remembered,
            reserved=stands.reserved,
            refused_cpus=stands.bindings.refused,
            settled=self.figures.settled,
            problems=dict(self.figures.problems),
        )
        picture = self._controlled(picture, at)
        self._kept.sweep()
        self.figures.prune(at)
        return picture

    def _collect(
        self,
        pods: tuple[state.PodState, ...],
        applications: tuple[state.HostApplication, ...],
        processors: tuple[state.Processor, ...],
        at: float,
    ) -> None:
        """Look at what only some nodes measure."""
        arranged = self.layout
        if arranged is None:
            return

        def sight() -> collecting.Sight:
            return collecting.Sight(
                at=at,
                layout=arranged,
                kept=self._kept,
                samples=self.samples,
                pods=pods,
                host_applications=applications,
                processors=processors,
                keep_seconds=self.figures.keep_seconds,
                pod_keep_seconds=self.figures.pod_keep_seconds,
                disks=self._disks,
            )

        self._collectors.step(sight)
        for source, reason in self._collectors.problems.items():
            self.figures.problem(source, reason)

    def _controlled(self, picture: state.NodeState, at: float) -> state.NodeState:
        """Add what only decisions look at."""
        if self._enforced is None or self.layout is None:
            return picture
        facts = self._controls.facts(self.layout, at, network=self.watching_network)
        waiting = self.watching_pressure
        node, online = state.Pressure(), state.Pressure()
        if waiting or self._enforced.cpu_eviction.used.threshold is not None:
            node = self._controls.pressure_of_node()
        if waiting:
            online = self._controls.pressure_of_online(self.layout, picture.pods)
        self._controls.forget([one.group for pod in picture.pods for one in pod.containers])
        return msgspec.structs.replace(
            picture,
            qos_groups=controls.groups(self.layout),
            kernel=facts.kernel,
            caches=facts.caches,
            disks={**facts.disks, **self._disks} if self._disks else facts.disks,
            network=facts.network,
            pod_groups=facts.pod_groups,
            pressure=node,
            online_pressure=online,
        )

    def _cgroups(self, at: float) -> cgroup_files.Cgroups | None:
        if self.layout is not None and at >= self._look_again:
            self._look_again = at + LAYOUT_SECONDS
            if not cgroup_files.stands(self.layout):
                _logger.warning("the cgroups of pods lie elsewhere by now, not at %s", self.layout)
                self.layout = self.figures.layout = None
        if self.layout is None:
            problem = f"{self.roots.cgroup} has no group of pods yet"
            try:
                found = cgroup_files.detect(self.roots.cgroup, self.roots.kubelet_root)
            except files.ReadingError as error:
                found, problem = None, str(error)
            if found is None:
                self.figures.problem("cgroup", problem)
                return None
            found = msgspec.structs.replace(
                found, proc=self.roots.proc, sys=self.roots.sys, terway=self.roots.terway
            )
            self.layout = self.figures.layout = found
        if self._groups is None or self._groups.layout is not self.layout:
            self._groups = cgroup_files.Cgroups(self.layout, self._kept)
        self._groups.begin()
        return self._groups

    def _stands(self, known: Known, at: float) -> machine_layout.Standing:
        """Return how the machine is built and who has which of its cpus alone."""
        found = self._site.look(machine_layout.Told(known.node, known.pods, known.kubelet), at)
        if self._site.problem:
            self.figures.problem("machine", self._site.problem)
        for source, reason in found.problems.items():
            self.figures.problem(source, reason)
        return found

    def _host_applications(
        self, known: Known, cgroups: cgroup_files.Cgroups | None, at: float
    ) -> tuple[state.HostApplication, ...]:
        """Sample the processes that settings name, wherever they run."""
        found = []
        for application in known.host_applications:
            series, group = sampler.SeriesKeys.of("host", application.name), ""
            if cgroups is not None and self.layout is not None:
                place = functools.partial(host_applications.group, self.layout, application)
                group = self._pods.placed(f"host application {application.name}", place)
            if cgroups is not None and group:
                usage = self.figures.group(series, group, cgroups, at)
            else:
                usage = self.figures.latest(series, at)
            found.append(host_applications.seen(application, usage, group))
        return tuple(found)

    def _best_effort(self, cgroups: cgroup_files.Cgroups | None) -> state.BestEffort | None:
        if cgroups is None:
            return None
        try:
            return cgroups.best_effort()
        except files.ReadingError as error:
            self.figures.problem("best effort", str(error))
            return None
