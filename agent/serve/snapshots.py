"""All that answers to container runtimes are made of: frozen by every tick. Pure.

Between two ticks pods arrive that a tick has not seen; `with_pods` adds them.
"""

from collections.abc import Callable, Collection, Mapping, Sequence

import msgspec

from agent.decide import frozen_look, hook_rules, planner
from agent.hooks.lifecycle import adjustment
from agent.model import cgroup_layout, live_switches, state
from agent.model.cpus import cpu_bindings
from api.koordinator.metadata import qos
from api.kubernetes import core
from api.wire import quantity


class Snapshot(msgspec.Struct, frozen=True):
    """Replaced as a whole, so that a thread reads it without a lock."""

    rules: adjustment.Rules = adjustment.Rules()
    pods: Mapping[str, state.PodState] = {}
    """The pods of this node by uid."""
    scope: planner.Scope = planner.Scope()
    live: live_switches.Here = live_switches.Here()
    cgroup_version: int = 2
    layout: cgroup_layout.Layout | None = None
    """Where cgroups lie; None records nothing of what is delivered."""
    roles: frozenset[str] = frozenset()
    """Properties of cgroups that this kernel has beside the common ones."""
    resctrl_groups: frozenset[str] = frozenset()
    """The resctrl groups that exist: a runtime refuses a container with any other."""
    site: cpu_bindings.Site = cpu_bindings.Site()
    overrides: Callable[[core.Pod], bool] | None = None
    """Tells whether the label SYSTEM of a pod counts; None where it never does."""


class Freezer:
    """Makes snapshots, with new rules only where something of them has changed."""

    def __init__(self, devices: Callable[[], hook_rules.Devices]) -> None:
        self._devices = devices
        self._key: object = None
        self._rules = adjustment.Rules()

    def freeze(self, told: frozen_look.Frozen) -> Snapshot:
        """Return the snapshot of a tick."""
        devices = self._devices()
        key = (told.seen, told.enforced, devices)
        if key != self._key:
            self._rules = hook_rules.freeze(told.look, told.enforced, devices)
            self._key = key
        picture = told.look.picture
        caches = picture.caches
        return Snapshot(
            self._rules,
            {pod.pod.metadata.uid: pod for pod in picture.pods},
            told.scope,
            told.live,
            told.layout.version,
            told.layout,
            picture.kernel.roles,
            frozenset() if caches is None else frozenset(caches.groups),
            cpu_bindings.Site(picture.node, picture.processors, picture.reserved, picture.kubelet),
            lambda pod: told.look.strategies.overrides.is_system(pod.metadata.namespace),
        )


def with_pods(now: Snapshot, pods: Sequence[core.Pod]) -> Snapshot:
    """Return the snapshot with pods that the latest tick has not seen."""
    fresh = [pod for pod in pods if pod.metadata.uid not in now.pods and not pod.finished]
    if not fresh or not now.rules.stages:
        return now
    bound = cpu_bindings.granted(pods, now.site).cpus
    added: dict[str, state.PodState] = {}
    for pod in fresh:
        made = _made(now, pod, bound)
        if made is not None:
            added[pod.metadata.uid] = made
    return msgspec.structs.replace(now, pods={**now.pods, **added})


def _made(
    now: Snapshot, pod: core.Pod, bound: Mapping[str, frozenset[int]]
) -> state.PodState | None:
    uid, group = pod.metadata.uid, ""
    try:
        kubernetes_qos = qos.kubernetes_qos(pod)
        if now.layout is not None:
            group = now.layout.pod_group(uid, kubernetes_qos)
    except (cgroup_layout.LayoutError, quantity.QuantityError):
        # A tick names what is wrong with such a pod.
        return None
    named = qos.qos_of(pod.metadata.labels)
    counts = now.overrides is not None and now.overrides(pod)
    return state.PodState(
        pod,
        kubernetes_qos,
        cpus=_free(bound.get(uid, frozenset()), now.pods.values()),
        group=group,
        demoted=named is qos.QoS.SYSTEM and not counts,
    )


def _free(cpus: frozenset[int], known: Collection[state.PodState]) -> frozenset[int]:
    """Return cpus that no pod has that was seen before, none where one of them is taken."""
    return cpus if all(cpus.isdisjoint(pod.cpus) for pod in known) else frozenset()
