"""One look at the node: readings become samples, samples become a NodeState."""

import dataclasses
from collections.abc import Sequence

from agent import files, history, host_applications, layout, reserved, state
from agent.observe import cgroupfs, machine, procfs
from api import core, qos, strategies

LONGEST_GAP = 20.0
FRESH_TICKS = 2.0
MOST_PROBLEMS = 20


@dataclasses.dataclass(frozen=True, slots=True)
class Roots:
    """Where this host's files lie."""

    proc: str = "/proc"
    sys: str = "/sys"
    cgroup: str = "/sys/fs/cgroup"


@dataclasses.dataclass(frozen=True, slots=True)
class Known:
    """What watches and the kubelet say about this node at the moment of a tick."""

    node: core.Node | None = None
    thresholds: state.Thresholds | None = None
    pods: Sequence[core.Pod] | None = None
    """None before the kubelet has answered for the first time."""
    host_applications: Sequence[strategies.HostApplication] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Moment:
    """The time of a tick."""

    wall: float
    monotonic: float


class Observer:
    """Reads the host once per tick and keeps the samples that reports are made of."""

    def __init__(self, roots: Roots, tick_seconds: float, keep_seconds: float = 1800.0) -> None:
        self.keep_seconds = keep_seconds
        self.pod_keep_seconds = 300.0
        self.samples = history.Histories()
        self.layout: layout.Layout | None = None
        self.roots = roots
        self._fresh = FRESH_TICKS * tick_seconds
        self._counters = history.Counters(max(LONGEST_GAP, 3 * tick_seconds))
        self._kept = files.Kept()
        self._proc = procfs.Proc(roots.proc, self._kept)
        self._processors: tuple[state.Processor, ...] = ()
        self._problems: dict[str, str] = {}
        self._settled = False

    def close(self) -> None:
        """Close every kept file."""
        self._kept.close()

    def observe(self, known: Known, now: Moment) -> state.NodeState:
        """Read everything once; what cannot be read is missing from the picture and named."""
        self._problems, self._settled = {}, known.pods is not None
        at = now.monotonic
        cgroups = self._cgroups()
        self._sample_node(at)
        pods = tuple(self._pod(pod, cgroups, at) for pod in known.pods or () if not pod.finished)
        applications = self._host_applications(known, cgroups, at)
        if self._settled:
            used = [state.Usage(one.cpu, one.memory) for one in applications]
            self._sample_system([*(pod.usage for pod in pods), *used], at)
        best_effort = self._best_effort(cgroups) if known.thresholds else None
        picture = state.NodeState(
            at=now.wall,
            node=known.node,
            thresholds=known.thresholds,
            usage=self._latest(("node",), at),
            system=self._latest(("system",), at),
            pods=pods,
            host_applications=applications,
            best_effort=best_effort,
            processors=self._machine(),
            reserved=reserved.read(known.node) if known.node else state.Reserved(),
            settled=self._settled,
            problems=dict(self._problems),
        )
        self._kept.sweep()
        self._counters.prune(at)
        self.samples.prune(at)
        return picture

    def _cgroups(self) -> cgroupfs.Cgroups | None:
        if self.layout is None:
            self.layout = cgroupfs.detect(self.roots.cgroup)
        if self.layout is None:
            self._problem("cgroup", f"{self.roots.cgroup} has no group of pods yet")
            return None
        return cgroupfs.Cgroups(self.layout, self._kept)

    def _machine(self) -> tuple[state.Processor, ...]:
        if not self._processors:
            try:
                self._processors = machine.processors(self.roots.sys)
            except files.ReadingError as error:
                self._problem("machine", str(error))
        return self._processors

    def _sample_node(self, at: float) -> None:
        try:
            self._cpu(("node",), at, self._proc.cpu_seconds(), self.keep_seconds)
            memory = self._proc.memory()
        except files.ReadingError as error:
            self._problem("proc", str(error))
            return
        use = cgroupfs.MemoryUse(memory.used, memory.used_with_page_cache)
        self._memory(("node",), at, use, self.keep_seconds)

    def _sample_system(self, others: Sequence[state.Usage], at: float) -> None:
        """What neither a pod nor anything else accounts for."""
        node = self._latest(("node",), at)
        if node.cpu is not None:
            cpu = max(0.0, node.cpu - sum(usage.cpu or 0.0 for usage in others))
            self.samples.add(("system", "cpu"), at, cpu, self.keep_seconds)
        if node.memory is not None:
            memory = max(0, node.memory - sum(usage.memory or 0 for usage in others))
            self.samples.add(("system", "memory"), at, memory, self.keep_seconds)

    def _host_applications(
        self, known: Known, cgroups: cgroupfs.Cgroups | None, at: float
    ) -> tuple[state.HostApplication, ...]:
        """Sample the processes that somebody named, wherever they run."""
        found = []
        for application in known.host_applications:
            key = ("host", application.name)
            if cgroups is not None and self.layout is not None:
                try:
                    group = host_applications.group(self.layout, application)
                except layout.LayoutError as error:
                    self._problem(f"host application {application.name}", str(error))
                else:
                    self._group(key, group, cgroups, at)
            found.append(host_applications.seen(application, self._latest(key, at)))
        return tuple(found)

    def _pod(self, pod: core.Pod, cgroups: cgroupfs.Cgroups | None, at: float) -> state.PodState:
        kubernetes_qos = qos.kubernetes_qos(pod)
        uid = pod.metadata.uid
        if cgroups is not None and self.layout is not None:
            try:
                group = self.layout.pod_group(uid, kubernetes_qos)
            except layout.LayoutError as error:
                self._problem(f"pod {pod.metadata.key}", str(error))
            else:
                self._group(("pod", uid), group, cgroups, at)
                self._containers(pod, group, cgroups, at)
        return state.PodState(
            pod, kubernetes_qos, self._latest(("pod", uid), at), reserved.bound_cpus(pod)
        )

    def _containers(
        self, pod: core.Pod, pod_group: str, cgroups: cgroupfs.Cgroups, at: float
    ) -> None:
        status = pod.status
        assert self.layout is not None
        for container in (*status.container_statuses, *status.init_container_statuses):
            if not container.container_id:
                continue
            key = ("container", pod.metadata.uid, container.name)
            try:
                group = self.layout.container_group(pod_group, container.container_id)
            except layout.LayoutError as error:
                self._problem(f"container {pod.metadata.key}/{container.name}", str(error))
            else:
                self._group(key, group, cgroups, at)

    def _group(
        self, key: tuple[str, ...], group: str, cgroups: cgroupfs.Cgroups, at: float
    ) -> None:
        """Sample one group; one that is gone says nothing, any other failure is a problem."""
        try:
            # The counter belongs to the group: a restarted container begins at zero in another.
            seconds = cgroups.cpu_seconds(group)
            rate = self._counters.rate(group, at, seconds)
            if rate is None:
                # One more look and it has a figure; until then it would pass for system load.
                self._settled = False
            else:
                self.samples.add((*key, "cpu"), at, rate, self.pod_keep_seconds)
            self._memory(key, at, cgroups.memory(group), self.pod_keep_seconds)
        except files.VanishedError:
            return
        except files.ReadingError as error:
            self._problem(" ".join(key), str(error))

    def _cpu(self, key: tuple[str, ...], at: float, seconds: float, keep: float) -> None:
        rate = self._counters.rate(key, at, seconds)
        if rate is not None:
            self.samples.add((*key, "cpu"), at, rate, keep)

    def _memory(
        self, key: tuple[str, ...], at: float, use: cgroupfs.MemoryUse, keep: float
    ) -> None:
        self.samples.add((*key, "memory"), at, use.without_cache, keep)
        self.samples.add((*key, "memory+cache"), at, use.with_cache, keep)

    def _latest(self, key: tuple[str, ...], at: float) -> state.Usage:
        since = at - self._fresh
        memory = self.samples.newest((*key, "memory"), since)
        return state.Usage(
            self.samples.newest((*key, "cpu"), since), None if memory is None else int(memory)
        )

    def _best_effort(self, cgroups: cgroupfs.Cgroups | None) -> state.BestEffort | None:
        if cgroups is None:
            return None
        try:
            return cgroups.best_effort()
        except files.ReadingError as error:
            self._problem("best effort", str(error))
            return None

    def _problem(self, source: str, reason: str) -> None:
        if len(self._problems) < MOST_PROBLEMS:
            self._problems[source] = reason
