"""Allocate devices of one node to a pod: all types together, joint ones close to each other."""

import dataclasses
from collections.abc import Collection, Mapping
from typing import Final

import msgspec

from api import names
from api.koordinator import devices
from domain.devices import inventory
from domain.devices.allocation import (
    candidates,
    device_scores,
    generic_pick,
    partitions,
    topology_scopes,
)
from domain.devices.requests import gpu_templates

Allocation = inventory.Allocation
Choice = candidates.Choice
Granted = inventory.Granted
Refusal = candidates.Refusal

NOT_JOINT: Final = Refusal("node(s) Device Joint-Allocate rules violation")
NO_ISOLATION: Final = Refusal("GPUIsolationProviderHAMICore not found on the node", final=True)
_FALLS_THROUGH: Final = (topology_scopes.NO_TREE, topology_scopes.SHARED)


@dataclasses.dataclass(frozen=True, slots=True)
class _Round:
    """What one allocation works with."""

    choice: Choice
    wanted: Mapping[str, candidates.Wanted]
    pools: Mapping[str, candidates.Pool]

    def switches(self, kind: str, granted: Collection[Granted]) -> frozenset[str]:
        known = self.pools[kind].known
        return frozenset(candidates.switch(known[one.minor]) for one in granted)


def allocate(choice: Choice) -> Allocation | Refusal:
    """Return the devices that a pod gets on a node, by type, or why it gets none."""
    wanted = candidates.wanted(choice)
    if isinstance(wanted, Refusal):
        return wanted
    step = _Round(choice, wanted, candidates.pools(choice, wanted))
    found = _joint(step)
    if isinstance(found, Refusal):
        return found
    allocation = dict(found)
    for kind, one in wanted.items():
        if kind in allocation:
            continue
        granted = _one_type(step, one)
        if isinstance(granted, Refusal):
            return granted
        allocation[kind] = granted
    return allocation


def _joint(step: _Round) -> Allocation | Refusal:
    joint = [kind for kind in step.choice.pod.joint if kind in step.wanted]
    if len(step.wanted) < 2 or not joint:
        return {}
    primary, *others = joint
    granted = _one_type(step, step.wanted[primary])
    if isinstance(granted, Refusal):
        return granted
    allocation = {primary: granted}
    near = step.switches(primary, granted)
    for kind in others:
        found = _secondary(step, kind, near)
        if isinstance(found, Refusal):
            return found
        allocation[kind] = found
    return allocation


def _secondary(step: _Round, kind: str, near: frozenset[str]) -> tuple[Granted, ...] | Refusal:
    same = step.choice.pod.same_pcie
    wanted = step.wanted[kind]
    if same:
        wanted = dataclasses.replace(wanted, count=max(wanted.count, len(near)))
    granted = _one_type(step, wanted, near)
    if isinstance(granted, Refusal):
        return granted
    if same and step.switches(kind, granted) != near:
        return NOT_JOINT
    return granted


def _one_type(
    step: _Round, wanted: candidates.Wanted, near: frozenset[str] = frozenset()
) -> tuple[Granted, ...] | Refusal:
    pool = step.pools[wanted.kind]
    if wanted.kind == devices.GPU:
        return _gpus(step, pool, wanted)
    return generic_pick.pick(pool, wanted, step.choice.scoring, most=len(near), near=near)


def _gpus(
    step: _Round, pool: candidates.Pool, wanted: candidates.Wanted
) -> tuple[Granted, ...] | Refusal:
    """Try a partition, then the narrowest topology scope, then GPUs one by one."""
    choice, asked = step.choice, step.wanted[devices.GPU]
    if choice.pod.templates is not None:
        return _sliced(step, pool, wanted, choice.pod.templates)
    if choice.pod.shares_gpus and asked.count == 1:
        for minor in choice.first:
            if minor in pool.free and candidates.fits(asked.per_device, pool.free[minor]):
                return (Granted(minor, asked.per_device),)
    if not choice.pod.shares_gpus:
        found = partitions.allocate(choice, pool, asked)
        if not isinstance(found, Refusal) or partitions.honoured(choice):
            return found
    return _scoped(step, pool, wanted)


def _sliced(
    step: _Round,
    pool: candidates.Pool,
    wanted: candidates.Wanted,
    templates: Mapping[str, tuple[str, ...]],
) -> tuple[Granted, ...] | Refusal:
    """Give slices by the template of the node's model; where several are alike, none is named."""
    vendor, model = inventory.gpu_model(step.choice.node.labels)
    fitting = templates.get(f"{vendor}-{model}", ())
    if not fitting:
        return gpu_templates.NO_TEMPLATE
    found = _scoped(step, pool, wanted)
    if isinstance(found, Refusal) or len(fitting) > 1:
        return found
    return tuple(msgspec.structs.replace(one, template=fitting[0]) for one in found)


def _scoped(
    step: _Round, pool: candidates.Pool, wanted: candidates.Wanted
) -> tuple[Granted, ...] | Refusal:
    choice = step.choice
    found = topology_scopes.allocate(choice, pool, step.wanted[devices.GPU])
    if wanted.hint.required_topology_scope or found not in _FALLS_THROUGH:
        return found
    return generic_pick.pick(pool, wanted, choice.scoring)


def score(choice: Choice) -> int | Refusal:
    """Score a node for a pod, before scores of nodes are scaled to the highest."""
    assert choice.scoring is not None
    wanted = candidates.wanted(choice)
    if isinstance(wanted, Refusal):
        return wanted
    return sum(
        device_scores.pool(choice.scoring, wanted[kind].per_device, pool.total, pool.free)
        for kind, pool in candidates.pools(choice, wanted).items()
        if any(wanted[kind].per_device.values())
    )


def unsuitable(choice: Choice, not_shared: Collection[tuple[str, str]]) -> Refusal | None:
    """Return why the GPUs of a node cannot be shared as the pod wants it.

    ``not_shared`` are vendors and models that are given to one pod only.
    """
    if not choice.pod.shares_gpus:
        return None
    isolation = choice.pod.isolation
    if isolation and choice.node.labels.get(names.LABEL_GPU_ISOLATION_PROVIDER) != isolation:
        return NO_ISOLATION
    vendor, model = inventory.gpu_model(choice.node.labels)
    if (vendor, model) in not_shared:
        return Refusal(f'model "{model}" of vendor "{vendor}" does not support GPU Share', True)
    return None
