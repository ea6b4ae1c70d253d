"""Everything that the descheduler watches, and the picture that a round decides on."""

from typing import Any, Final

from api import names, resources
from api.koordinator.metrics import nodemetric_structs
from api.kubernetes import core, protobuf_fields
from descheduler.informers import gangs, pod_index, workloads
from descheduler.model import (
    node_projection,
    nodeinfo,
    object_projection,
    objects,
    picture,
    pod_object,
    pod_projection,
    podinfo,
)
from kube.client import client as clients
from kube.client import protobuf
from kube.informers import informer_set, reflector, shared_store, store
from process.runtime import clock as clocks
from process.runtime import supervise

_POD_EVENTS: Final = protobuf.Codec("Pod", protobuf_fields.POD_WITH_VOLUMES)


class Watched:
    """The stores of the descheduler."""

    def __init__(self, api: clients.Client, clock: clocks.Clock, namespace: str) -> None:
        """`namespace` is that of the ConfigMap of live switches."""
        members = informer_set.InformerSet(api, clock)
        self.members = members
        """Without which no round is possible."""
        self.more = informer_set.InformerSet(api, clock)
        """What is known of workloads and gangs besides; no round waits for it."""
        self.all_pods: shared_store.SharedStore[Any] = shared_store.SharedStore()
        """Gives further views of the pods, as `pod_object.Pod`, before the start."""
        self.pods: store.Store[podinfo.Pod] = self.all_pods.view(pod_projection.Projector().pod)
        members.add(
            reflector.Projection(
                resources.PODS, pod_object.Pod, self.all_pods.project, binary=_POD_EVENTS
            ),
            self.all_pods,
        )
        self.nodes = members.add(
            reflector.Projection(resources.NODES, core.Node, node_projection.node)
        )
        self.usage: store.Store[nodeinfo.Usage] = members.add(
            reflector.Projection(
                resources.NODE_METRICS, nodemetric_structs.NodeMetric, node_projection.usage
            )
        )
        self.jobs: store.Store[objects.Job] = members.add(
            _of_dict(resources.POD_MIGRATION_JOBS, object_projection.job)
        )
        self.reservations: store.Store[objects.Reservation] = members.add(
            _of_dict(resources.RESERVATIONS, object_projection.reservation)
        )
        self.budgets = members.add(
            reflector.Projection(
                resources.POD_DISRUPTION_BUDGETS,
                core.PodDisruptionBudget,
                object_projection.budget,
            )
        )
        self.workloads = workloads.Workloads(members, self.more)
        self.namespaces = members.add(
            reflector.Projection(resources.NAMESPACES, core.Namespace, object_projection.namespace)
        )
        self.priorities = members.add(
            reflector.Projection(resources.PRIORITY_CLASSES, core.PriorityClass, _value)
        )
        self._gangs = gangs.Gangs(self.more)
        self.switches = members.add(reflector.config_map(names.CONFIG_MAP_SWITCHES, namespace))
        self._index = pod_index.PodIndex(self.pods)

    def start(self, supervisor: supervise.Supervisor) -> None:
        """Start to list and watch."""
        self.members.start(supervisor)
        self.more.start(supervisor)

    def picture(self, now: float) -> picture.Picture:
        """Return the cluster as it is known now; what is returned does not change."""
        pods = self._index.snapshot()
        return picture.Picture(
            now=now,
            nodes=dict(self.nodes.items()),
            pods=pods.pods,
            on_node=pods.on_node,
            usage=dict(self.usage.items()),
            workloads=self.workloads.by_uid(),
            alike=pods.alike,
            by_controller=pods.by_controller,
            budgets=tuple(self.budgets),
            jobs=dict(self.jobs.items()),
            namespaces={name: one.labels for name, one in self.namespaces.items()},
            exempt_namespaces={name for name, one in self.namespaces.items() if one.is_exempt},
            priorities=dict(self.priorities.items()),
            gangs=self._gangs.by_key(),
        )


def _of_dict(resource: resources.Resource, project: Any) -> reflector.Projection[Any]:
    return reflector.Projection(resource, dict, project)


def _value(priority_class: core.PriorityClass) -> int:
    return priority_class.value
