"""The rules of runtime hooks, frozen once per tick from what strategies look at. Pure.

A strategy binds the same rule to the same hook for pods that exist already.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Final

import msgspec

from agent.decide import catalogue
from agent.hooks import batch_resources, blkio, oom_score, resctrl
from agent.hooks.cpu import core_sched, cpu_burst, cpu_normalization, cpuset, group_identity
from agent.hooks.devices import gpu_env, rdma_devices
from agent.hooks.lifecycle import adjustment, stages

Rule = Callable[[catalogue.Look], adjustment.Bound | None]


class Devices(msgspec.Struct, frozen=True):
    """Which hooks of devices are on, and what they have to know of this host."""

    gpu: bool = False
    rdma: rdma_devices.Rule | None = None


def freeze(
    look: catalogue.Look, enforced: Collection[str], devices: Devices | None = None
) -> adjustment.Rules:
    """Return the rules of every stage: of the strategies that are enforced, by name."""
    found = [rule(look) for name, rule in RULES.items() if name in enforced]
    beside = devices or Devices()
    if beside.gpu:
        found.append(gpu_env.HOOK.bind(None))
    if beside.rdma is not None:
        found.append(rdma_devices.HOOK.bind(beside.rdma))
    return stages.freeze(bound for bound in found if bound is not None)


def _cpuset(look: catalogue.Look) -> adjustment.Bound | None:
    picture = look.picture
    if not picture.processors:
        return None
    return cpuset.HOOK.bind(cpuset.rule(picture, managed="BECPUManager" in look.enabled))


def _core_sched(look: catalogue.Look) -> adjustment.Bound | None:
    classes = look.strategies.classes
    if core_sched.why_off(look.picture, classes):
        return None
    return core_sched.HOOK.bind(classes)


def _group_identity(look: catalogue.Look) -> adjustment.Bound | None:
    by = group_identity.rule(look.strategies.classes, catalogue.highest_identity(look))
    return group_identity.HOOK.bind(group_identity.on(look.picture, by)) if by.enable else None


def _batch_resources(look: catalogue.Look) -> adjustment.Bound | None:
    return batch_resources.HOOK.bind(catalogue.batch_rule(look))


def _cpu_burst(look: catalogue.Look) -> adjustment.Bound | None:
    settings = catalogue.burst_settings(look)
    return cpu_burst.HOOK.bind(cpu_burst.Rule(settings, look.picture.kernel))


def _cpu_normalization(look: catalogue.Look) -> adjustment.Bound | None:
    by = catalogue.cpu_ratio(look.picture)
    return cpu_normalization.HOOK.bind(by) if by is not None and by > 1 else None


def _blkio(look: catalogue.Look) -> adjustment.Bound | None:
    return blkio.HOOK.bind(look.picture.disks)


def _resctrl(look: catalogue.Look) -> adjustment.Bound | None:
    machine = look.picture.caches
    if machine is None:
        return None
    classes, most = catalogue.cache_classes(look), look.strategies.overrides
    of_pods = "Resctrl" in look.enabled
    return resctrl.HOOK.bind(resctrl.rule(classes, machine, most, of_pods=of_pods))


def _oom_score(look: catalogue.Look) -> adjustment.Bound | None:
    rule = oom_score.rule(look.picture, look.strategies.overrides)
    return None if rule is None else oom_score.HOOK.bind(rule)


RULES: Final[Mapping[str, Rule]] = {
    "cpuset": _cpuset,
    "core-sched": _core_sched,
    "group-identity": _group_identity,
    "batch-resources": _batch_resources,
    "cpu-burst": _cpu_burst,
    "cpu-normalization": _cpu_normalization,
    "block-io": _blkio,
    "cache": _resctrl,
    "oom-score": _oom_score,
}
"""The rule of each strategy that has a hook, by the name of the strategy."""
