"""One look at the node: readings become samples, samples become a NodeState."""

import dataclasses
import functools
from collections.abc import Callable, Sequence

from agent import controls, files, history, host_applications, layout, reserved, state
from agent import strategies as enforcement
from agent.observe import cgroupfs, coldpages, machine, procfs
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
    enforced: enforcement.Strategies | None = None
    """What is enforced beside the thresholds; None reads nothing that only enforcement needs."""


@dataclasses.dataclass(frozen=True, slots=True)
class Moment:
    """The time of a tick."""

    wall: float
    monotonic: float


class Figures:
    """Samples by what they are about: cpu in cores, memory in bytes."""

    def __init__(self, samples: history.Histories, longest_gap: float, fresh: float) -> None:
        self._samples = samples
        self._fresh = fresh
        self.counters = history.Counters(longest_gap)
        self.with_cache = True
        """Whether memory with page cache is sampled as well."""
        self.with_hot = False
        """Whether memory with page cache that is in use is sampled as well."""

    def cpu(self, key: tuple[str, ...], at: float, seconds: float, keep: float) -> None:
        """Take in how long something has worked so far."""
        rate = self.counters.rate(key, at, seconds)
        if rate is not None:
            self._samples.add((*key, "cpu"), at, rate, keep)

    def memory(self, key: tuple[str, ...], at: float, use: cgroupfs.MemoryUse, keep: float) -> None:
        """Take in how much something holds."""
        self._samples.add((*key, "memory"), at, use.without_cache, keep)
        if self.with_cache:
            self._samples.add((*key, "memory+cache"), at, use.with_cache, keep)

    def hot(self, key: tuple[str, ...], at: float, size: int, keep: float) -> None:
        """Take in how much something holds without what nobody has touched for long."""
        self._samples.add((*key, "memory+hot"), at, max(0, size), keep)

    def latest(self, key: tuple[str, ...], at: float) -> state.Usage:
        """Return what something uses now, nothing where the last sample is too old."""
        since = at - self._fresh
        memory = self._samples.newest((*key, "memory"), since)
        cpu = self._samples.newest((*key, "cpu"), since)
        return state.Usage(cpu, None if memory is None else int(memory))


class Observer:
    """Reads the host once per tick and keeps the samples that reports are made of."""

    def __init__(self, roots: Roots, tick_seconds: float, keep_seconds: float = 1800.0) -> None:
        self.keep_seconds = keep_seconds
        self.pod_keep_seconds = 300.0
        self.watching_pressure = False
        """Whether a decision asks how long online tasks wait."""
        self.samples = history.Histories()
        self.layout: layout.Layout | None = None
        self.roots = roots
        gap = max(LONGEST_GAP, 3 * tick_seconds)
        self.figures = Figures(self.samples, gap, FRESH_TICKS * tick_seconds)
        self._kept = files.Kept()
        self._proc = procfs.Proc(roots.proc, self._kept)
        self._processors: tuple[state.Processor, ...] = ()
        self._problems: dict[str, str] = {}
        self._settled = False
        self._controls = controls.Controls(controls.Place(roots.proc, roots.sys), self._kept)
        self._enforced: enforcement.Strategies | None = None

    def close(self) -> None:
        """Close every kept file."""
        self._kept.close()

    def observe(self, known: Known, now: Moment) -> state.NodeState:
        """Read everything once; what cannot be read is missing from the picture and named."""
        self._problems, self._settled = {}, known.pods is not None
        self._enforced = known.enforced
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
            usage=self.figures.latest(("node",), at),
            system=self.figures.latest(("system",), at),
            pods=pods,
            host_applications=applications,
            best_effort=best_effort,
            processors=self._machine(),
            reserved=reserved.read(known.node) if known.node else state.Reserved(),
            settled=self._settled,
            problems=dict(self._problems),
        )
        picture = self._controlled(picture, at)
        self._kept.sweep()
        self.figures.counters.prune(at)
        self.samples.prune(at)
        return picture

    def _controlled(self, picture: state.NodeState, at: float) -> state.NodeState:
        """Add what only decisions look at."""
        if self._enforced is None or self.layout is None:
            return picture
        facts = self._controls.facts(self.layout, at)
        waiting = self.watching_pressure
        node, online = state.Pressure(), state.Pressure()
        if waiting or self._enforced.cpu_eviction.used.threshold is not None:
            node = self._controls.pressure_of_node()
        if waiting:
            online = self._controls.pressure_of_online(self.layout, picture.pods)
        self._controls.forget([one.group for pod in picture.pods for one in pod.containers])
        return dataclasses.replace(
            picture,
            qos_groups=controls.groups(self.layout),
            kernel=facts.kernel,
            caches=facts.caches,
            disks=facts.disks,
            pressure=node,
            online_pressure=online,
        )

    def _cgroups(self) -> cgroupfs.Cgroups | None:
        if self.layout is None:
            found = cgroupfs.detect(self.roots.cgroup)
            if found is not None:
                self.layout = dataclasses.replace(found, proc=self.roots.proc, sys=self.roots.sys)
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
            self.figures.cpu(("node",), at, self._proc.cpu_seconds(), self.keep_seconds)
            memory = self._proc.memory()
        except files.ReadingError as error:
            self._problem("proc", str(error))
            return
        use = cgroupfs.MemoryUse(memory.used, memory.used_with_page_cache)
        self.figures.memory(("node",), at, use, self.keep_seconds)
        try:
            self._hot(("node",), "", at, use.with_cache, self.keep_seconds)
        except files.ReadingError as error:
            self._problem("cold pages", str(error))

    def _sample_system(self, others: Sequence[state.Usage], at: float) -> None:
        """What neither a pod nor anything else accounts for."""
        rest = unaccounted(self.figures.latest(("node",), at), others)
        for name, value in (("cpu", rest.cpu), ("memory", rest.memory)):
            if value is not None:
                self.samples.add(("system", name), at, value, self.keep_seconds)

    def _host_applications(
        self, known: Known, cgroups: cgroupfs.Cgroups | None, at: float
    ) -> tuple[state.HostApplication, ...]:
        """Sample the processes that somebody named, wherever they run."""
        found = []
        for application in known.host_applications:
            key, group = ("host", application.name), ""
            if cgroups is not None and self.layout is not None:
                place = functools.partial(host_applications.group, self.layout, application)
                group = self._placed(f"host application {application.name}", place)
                if group:
                    self._group(key, group, cgroups, at)
            found.append(host_applications.seen(application, self.figures.latest(key, at), group))
        return tuple(found)

    def _pod(self, pod: core.Pod, cgroups: cgroupfs.Cgroups | None, at: float) -> state.PodState:
        kubernetes_qos = qos.kubernetes_qos(pod)
        uid = pod.metadata.uid
        group, quota, sandbox = "", None, ""
        found: tuple[state.ContainerState, ...] = ()
        if cgroups is not None and self.layout is not None:
            place = functools.partial(self.layout.pod_group, uid, kubernetes_qos)
            group = self._placed(f"pod {pod.metadata.key}", place)
            if group:
                self._group(("pod", uid), group, cgroups, at)
                found = self._containers(pod, group, cgroups, at)
                if self._enforced is not None:
                    known = [one.group for one in found]
                    sandbox = self._controls.sandbox(self.layout, group, known, at)
                    quota = self._quota(pod, group, cgroups)
        return state.PodState(
            pod,
            kubernetes_qos,
            self.figures.latest(("pod", uid), at),
            reserved.bound_cpus(pod),
            group,
            quota,
            found,
            sandbox,
        )

    def _quota(self, pod: core.Pod, group: str, cgroups: cgroupfs.Cgroups) -> int | None:
        """Read what a group may use, where a decision will ask for it."""
        if self._enforced is None or not controls.bursts(pod, self._enforced):
            return None
        return cgroups.allowed_us(group)

    def _containers(
        self, pod: core.Pod, pod_group: str, cgroups: cgroupfs.Cgroups, at: float
    ) -> tuple[state.ContainerState, ...]:
        status = pod.status
        assert self.layout is not None
        asked = {one.name: one for one in (*pod.spec.init_containers, *pod.spec.containers)}
        first = len(status.container_statuses)
        found = []
        statuses = (*status.container_statuses, *status.init_container_statuses)
        for position, container in enumerate(statuses):
            if not container.container_id:
                continue
            key = ("container", pod.metadata.uid, container.name)
            identity = container.container_id
            place = functools.partial(self.layout.container_group, pod_group, identity)
            group = self._placed(f"container {pod.metadata.key}/{container.name}", place)
            if not group:
                continue
            self._group(key, group, cgroups, at)
            quota = self._quota(pod, group, cgroups)
            found.append(
                state.ContainerState(
                    name=container.name,
                    group=group,
                    container=asked.get(container.name, core.Container()),
                    running="terminated" not in container.state,
                    initial=position >= first,
                    usage=self.figures.latest(key, at),
                    throttled=None if quota is None else self._controls.throttled(group, cgroups),
                    quota_us=quota,
                )
            )
        return tuple(found)

    def _hot(self, key: tuple[str, ...], group: str, at: float, size: int, keep: float) -> None:
        """Leave out what nobody has touched for long, where that is asked for and counted."""
        if self.layout is not None and self.figures.with_hot:
            cold = coldpages.cold(self.layout, self._kept, group)
            if cold is not None:
                self.figures.hot(key, at, size - cold, keep)

    def _placed(self, source: str, place: Callable[[], str]) -> str:
        """Return a group, nothing where it cannot be one."""
        try:
            return place()
        except layout.LayoutError as error:
            self._problem(source, str(error))
            return ""

    def _group(
        self, key: tuple[str, ...], group: str, cgroups: cgroupfs.Cgroups, at: float
    ) -> None:
        """Sample one group; one that is gone says nothing, any other failure is a problem."""
        try:
            # The counter belongs to the group: a restarted container begins at zero in another.
            seconds = cgroups.cpu_seconds(group)
            rate = self.figures.counters.rate(group, at, seconds)
            if rate is None:
                # One more look and it has a figure; until then it would pass for system load.
                self._settled = False
            else:
                self.samples.add((*key, "cpu"), at, rate, self.pod_keep_seconds)
            use = cgroups.memory(group)
            self.figures.memory(key, at, use, self.pod_keep_seconds)
            self._hot(key, group, at, use.with_cache, self.pod_keep_seconds)
        except files.VanishedError:
            return
        except files.ReadingError as error:
            self._problem(" ".join(key), str(error))

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


def unaccounted(node: state.Usage, others: Sequence[state.Usage]) -> state.Usage:
    """Return what of the use of a node is nobody's."""
    cpu = None if node.cpu is None else max(0.0, node.cpu - sum(o.cpu or 0.0 for o in others))
    held = sum(other.memory or 0 for other in others)
    return state.Usage(cpu, None if node.memory is None else max(0, node.memory - held))
