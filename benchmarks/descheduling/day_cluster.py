"""Machines and pods of a simulated day, as the descheduler and as the scheduler see them.

Load follows the pods. The scheduler is the extender's own code, with the plug-ins that are on by
default; it is brought up to date when it is asked, which most minutes do not do.
"""

import dataclasses
from collections.abc import Collection
from typing import Any, Final

import msgspec
import numpy as np

from api import names
from api.koordinator import migration
from api.koordinator.metadata import qos
from api.kubernetes import core, meta
from benchmarks import gang_planning
from benchmarks.descheduling import day_trace
from descheduler.framework import protocols
from descheduler.model import nodeinfo, objects, picture, podinfo
from descheduler.placement import fork_targets
from domain.usage import load
from extender.gangs.planning import planner
from extender.state import records

START: Final = 1_800_000_000.0
MINUTE: Final = 60.0
MOVE_MINUTES: Final = 2
"""From the decision until the new pod has taken over."""
_TOLD_MINUTES: Final = 10
"""How long a job stays after its end."""
_ONE: Final = "move"
_SHARE: Final = 5
"""One of so many nodes is open to a workload at first."""


@dataclasses.dataclass(frozen=True, slots=True)
class Moving:
    """A pod on its way."""

    line: int
    source: str
    target: str
    """Empty where the scheduler chooses when the pod leaves."""
    decided: int
    """Minute."""


class DayCluster:
    """The cluster at one minute of the day."""

    def __init__(self, trace: day_trace.Trace, seed: int) -> None:
        self.trace, size = trace, trace.size
        self.names = [f"node-{number:04}" for number in range(size.nodes)]
        self.rows = {name: row for row, name in enumerate(self.names)}
        offered = {
            names.CPU: size.cores * 1000,
            names.MEMORY: size.memory_gib << 30,
            names.PODS: 110,
        }
        self._nodes = {
            name: nodeinfo.Node(name, name, allocatable=offered, capacity=offered)
            for name in self.names
        }
        self.at = _placed(trace, offered, seed)
        """Row of the node by line."""
        self._turn = np.zeros(self.at.size, dtype=np.int64)
        self.pods = [self._pod(line, START - 86_400.0) for line in range(self.at.size)]
        self.minute = 0
        self.moving: dict[int, Moving] = {}
        self._jobs: dict[str, tuple[int, objects.Job]] = {}
        self._scheduler = _Scheduler(self)
        self.cpu, self.memory = trace.step(0)

    @property
    def now(self) -> float:
        """Return the time."""
        return START + self.minute * MINUTE

    def _pod(self, line: int, created: float) -> podinfo.Pod:
        trace, workload = self.trace, int(self.trace.workload[line])
        key = f"team-{workload % 20}/app-{workload}-{line}-{self._turn[line]}"
        owner = core.OwnerReference(
            "apps/v1", "ReplicaSet", f"app-{workload}", f"rs-{workload}", controller=True
        )
        requests = {
            names.CPU: int(trace.cpu_request[workload]),
            names.MEMORY: int(trace.memory_request[workload]),
            names.PODS: 1,
        }
        return podinfo.Pod(
            key=key,
            uid=f"uid-{line}-{self._turn[line]}",
            node=self.names[int(self.at[line])],
            phase="Running",
            band=qos.Band.PROD,
            kubernetes_qos="Burstable",
            scheduler_name="default-scheduler",
            labels={"app": f"app-{workload}"},
            owners=(owner,),
            requests=requests,
            created=created,
            started=created,
            ready=True,
        )

    # -- time ------------------------------------------------------------------------------

    def tick(self) -> list[Moving]:
        """Let a minute pass; return the moves that have ended."""
        self.minute += 1
        self.cpu, self.memory = self.trace.step(self.minute)
        over = [m for m in self.moving.values() if self.minute - m.decided >= MOVE_MINUTES]
        return [self._land(one) for one in over]

    def begin(self, pod: podinfo.Pod, target: str) -> None:
        """Let a pod be moved; a target is reserved from now on."""
        line = int(pod.uid.split("-")[1])
        self.moving[line] = Moving(line, pod.node, target, self.minute)
        self._jobs[pod.uid] = self.minute, _job(pod, target, self.now)
        if target:
            self._scheduler.keep(pod, target)

    def _land(self, one: Moving) -> Moving:
        old = self.pods[one.line]
        target = one.target or self._scheduler.chosen(old)
        del self.moving[one.line]
        job = self._jobs[old.uid][1]
        self._jobs[old.uid] = self.minute, _ended(job, target)
        if not target:
            return one
        self.at[one.line] = self.rows[target]
        self._turn[one.line] += 1
        self.pods[one.line] = new = self._pod(one.line, self.now)
        self._scheduler.replace(old, new)
        return dataclasses.replace(one, target=target)

    # -- what is seen ------------------------------------------------------------------------

    def loads(self) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """Return the use of cpu and memory by machine."""
        system, memory = self.trace.system(self.minute)
        count = len(self.names)
        return (
            np.bincount(self.at, self.cpu, count) + system,
            np.bincount(self.at, self.memory, count) + memory,
        )

    def targets(self, seen: picture.Picture) -> protocols.Targets:
        """Return where the scheduler would take pods; it is brought up to date when asked."""
        return _Lazy(self._scheduler, seen)

    def picture(self) -> picture.Picture:
        """Return the cluster as the descheduler sees it."""
        on_node: dict[str, list[podinfo.Pod]] = {name: [] for name in self.names}
        used: dict[str, dict[str, podinfo.Amounts]] = {name: {} for name in self.names}
        by_controller: dict[str, list[podinfo.Pod]] = {}
        alike: dict[podinfo.Likeness, list[podinfo.Pod]] = {}
        cpu, memory = self.cpu.astype(np.int64).tolist(), self.memory.astype(np.int64).tolist()
        for line, pod in enumerate(self.pods):
            on_node[pod.node].append(pod)
            alike.setdefault(podinfo.likeness(pod), []).append(pod)
            used[pod.node][pod.key] = {names.CPU: cpu[line], names.MEMORY: memory[line]}
            by_controller.setdefault(pod.owners[0].uid, []).append(pod)
        system, system_memory = self.trace.system(self.minute)
        usage = {
            name: nodeinfo.Usage(
                name,
                self.now,
                {names.CPU: int(system[row]), names.MEMORY: int(system_memory)},
                used[name],
            )
            for row, name in enumerate(self.names)
        }
        self._jobs = {
            uid: (at, job)
            for uid, (at, job) in self._jobs.items()
            if job.is_open or self.minute - at < _TOLD_MINUTES
        }
        return picture.Picture(
            self.now,
            self._nodes,
            {pod.uid: pod for pod in self.pods},
            on_node,
            alike,
            usage,
            workloads={
                uid: objects.Workload(uid, "ReplicaSet", pods[0].key, len(pods))
                for uid, pods in by_controller.items()
            },
            by_controller=by_controller,
            jobs={job.name: job for _, job in self._jobs.values()},
            namespaces={f"team-{number}": {} for number in range(20)},
        )


class _Scheduler:
    """The extender's state and plug-ins."""

    def __init__(self, cluster: DayCluster) -> None:
        self._cluster = cluster
        self._extender = gang_planning.Extender()
        self._reported = -1
        self._known: dict[str, records.PodRecord] = {}
        books = self._extender.books
        for name in cluster.names:
            size = cluster.trace.size
            offered = (("cpu", size.cores * 1000), ("memory", size.memory_gib << 30), ("pods", 110))
            books.node(None, records.NodeRecord(name, offered, offered, uid=name))
        for pod in cluster.pods:
            self._told(pod)

    def _record(self, pod: podinfo.Pod, node: str) -> records.PodRecord:
        priority = {"koordinator.sh/priority-class": pod.band.value}
        raw = {
            "metadata": {
                "namespace": pod.namespace, "name": pod.name, "uid": pod.uid, "labels": priority,
            },
            "spec": {"nodeName": node, "containers": [{"name": "c", "resources": {"requests": {
                "cpu": f"{pod.requests[names.CPU]}m", "memory": str(pod.requests[names.MEMORY]),
            }}}]},
        }  # fmt: skip
        record = self._extender.projector.pod(msgspec.convert(raw, core.Pod))
        assert record is not None
        return msgspec.structs.replace(record, assigned_at=pod.created)

    def _told(self, pod: podinfo.Pod) -> None:
        record = self._record(pod, pod.node)
        self._extender.books.pod(self._known.get(pod.uid), record, pod.created)
        self._known[pod.uid] = record

    def replace(self, old: podinfo.Pod, new: podinfo.Pod) -> None:
        """Let one pod leave and another come, which what was kept is for."""
        known = self._known.pop(old.uid)
        self._extender.books.withdraw(old.uid + _ONE)
        self._extender.books.pod(known, None, new.created)
        self._told(new)

    def keep(self, pod: podinfo.Pod, target: str) -> None:
        """Keep the requests of a pod on the node that it will move to."""
        waits = msgspec.structs.replace(self._record(pod, ""), uid=pod.uid + _ONE)
        self._extender.books.nominate(waits, target, evidence="reservation")

    def chosen(self, pod: podinfo.Pod) -> str:
        """Return the node that the scheduler chooses now, other than that of the pod."""
        self.refresh()
        waits = msgspec.structs.replace(self._record(pod, ""), uid=pod.uid + _ONE)
        found = planner.plan(
            self._extender.line,
            self._extender.cluster.fork(),
            [planner.Member(waits, _ONE)],
            planner.Options({_ONE: 1}, {waits.uid: (pod.node,)}),
            self._cluster.now,
        )
        return found.placements[0].node if isinstance(found, planner.Plan) else ""

    def refresh(self) -> None:
        """Tell the scheduler what agents measure now."""
        cluster = self._cluster
        if self._reported == cluster.minute:
            return
        self._reported = cluster.minute
        pods: dict[str, dict[str, tuple[bool, load.Vector | None]]] = {n: {} for n in cluster.names}
        used = np.stack((cluster.cpu, cluster.memory), axis=1).astype(np.int64).tolist()
        for line, pod in enumerate(cluster.pods):
            pods[pod.node][pod.key] = True, tuple(used[line])
        cpu, memory = cluster.loads()
        system, system_memory = cluster.trace.system(cluster.minute)
        for row, name in enumerate(cluster.names):
            self._extender.books.report(
                name,
                load.Report(
                    cluster.now, MINUTE, (int(cpu[row]), int(memory[row])),
                    (int(system[row]), int(system_memory)), (), pods[name], ("cpu", "memory"),
                ),
            )  # fmt: skip

    def forked(self, seen: picture.Picture) -> fork_targets.ForkTargets:
        """Return a fork of the state as it is now."""
        self.refresh()
        fork = self._extender.cluster.fork()
        return fork_targets.ForkTargets(self._extender.line, fork, seen)


class _Lazy:
    """Forks the state when it is asked for the first time; implements `protocols.Targets`."""

    def __init__(self, scheduler: _Scheduler, seen: picture.Picture) -> None:
        self._scheduler, self._seen = scheduler, seen
        self._made: fork_targets.ForkTargets | None = None

    def _fork(self) -> fork_targets.ForkTargets:
        if self._made is None:
            self._made = self._scheduler.forked(self._seen)
        return self._made

    def target(
        self, pod: podinfo.Pod, among: Collection[str] | None, without: Collection[str]
    ) -> protocols.Target | protocols.NoTarget:
        """Return the best node for a pod."""
        return self._fork().target(pod, among, without)

    def move(self, pod: podinfo.Pod, node: str) -> None:
        """Let the pod be on that node from here on."""
        self._fork().move(pod, node)

    def remove(self, pod: podinfo.Pod) -> None:
        """Let the pod be gone from here on."""
        self._fork().remove(pod)

    def mark(self) -> int:
        """Return a mark to which moves can be taken back."""
        return self._fork().mark()

    def undo(self, mark: int) -> None:
        """Take all moves back that were made since a mark."""
        self._fork().undo(mark)


def _placed(
    trace: day_trace.Trace, offered: podinfo.Amounts, seed: int
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Place pods by their requests, each on the emptier of two nodes drawn by chance.

    Each workload has a fifth of all nodes to choose from, as zones, images and volumes make it, so
    that busy workloads meet.
    """
    rng = np.random.default_rng(seed + 1)
    count = trace.size.nodes
    own = [rng.choice(count, max(count // _SHARE, 2), replace=False) for _ in trace.cpu_request]
    left = np.full(count, offered[names.CPU], dtype=np.float64)
    memory = np.full(count, offered[names.MEMORY], dtype=np.float64)
    at = np.zeros(trace.workload.size, dtype=np.int64)
    # Pods come by workload, so that those of one are not spread evenly.
    for line, workload in enumerate(trace.workload.tolist()):
        asked, bytes_ = trace.cpu_request[workload], trace.memory_request[workload]
        drawn = rng.choice(own[workload], 2, replace=False)
        order = sorted(drawn.tolist(), key=lambda row: -left[row])
        fits = [row for row in order if left[row] >= asked and memory[row] >= bytes_]
        row = fits[0] if fits else int(left.argmax())
        left[row] -= asked
        memory[row] -= bytes_
        at[line] = row
    return at


def _job(pod: podinfo.Pod, target: str, now: float) -> objects.Job:
    namespace, _, name = pod.key.partition("/")
    ref = meta.ObjectReference(namespace=namespace, name=name, uid=pod.uid)
    return objects.Job(
        name=f"job-{pod.uid}",
        uid=f"job-{pod.uid}",
        version="1",
        created=now,
        annotations={
            names.ANNOTATION_MIGRATION_WORKLOAD: pod.owners[0].uid,
            names.ANNOTATION_MIGRATION_SOURCE: pod.node,
            names.ANNOTATION_MIGRATION_TARGET: target,
        },
        labels={},
        spec=migration.Spec(pod_ref=ref),
        status=migration.Status(phase="Running", node_name=target),
    )


def _ended(job: objects.Job, target: str) -> objects.Job:
    status = migration.Status(phase="Succeeded" if target else "Failed", node_name=target)
    return msgspec.structs.replace(job, status=status)
