"""How memory is protected and reclaimed, as recorded."""

import msgspec
import pytest

from agent.decide.strategies import memory_qos
from agent.model import cgroup_layout, cgroup_properties, state, strategy_settings
from api.koordinator.metadata import qos
from api.kubernetes import core
from tests.reference import cases, differences_agent

CLASSES = {"lsrClass": "LSR", "lsClass": "LS", "beClass": "BE", "systemClass": "SYSTEM"}
FIELDS = {
    "min_percent": "minLimitPercent",
    "low_percent": "lowLimitPercent",
    "throttling_percent": "throttlingPercent",
    "wmark_ratio": "wmarkRatio",
    "wmark_scale": "wmarkScalePermill",
    "wmark_min_adj": "wmarkMinAdj",
    "priority_enable": "priorityEnable",
    "priority": "priority",
    "oom_group": "oomKillGroup",
    "page_cache_enable": "pageCacheEnable",
    "page_cache_percent": "pageCacheLimitPercent",
    "page_cache_size": "pageCacheLimitSize",
    "page_cache_sync": "pageCacheReclaimSync",
}


def settings(strategy):
    found = {}
    for name, parts in strategy.items():
        written = parts.get("memoryQOS")
        if name in CLASSES and written is not None:
            given = {field: written.get(wire) for field, wire in FIELDS.items()}
            found[qos.QoS(CLASSES[name])] = strategy_settings.Memory(**given)
    return found


def picture(given):
    pods = []
    for raw in given["pods"]:
        spec = {c.name: c for c in differences_agent.pod_state(raw).pod.spec.containers}
        name = raw["metadata"]["name"]
        containers = tuple(
            state.ContainerState(status["name"], f"{name}/{status['name']}", spec[status["name"]])
            for status in raw["status"].get("containerStatuses", ())
        )
        pods.append(differences_agent.pod_state(raw, group=name, containers=containers))
    names = ("Guaranteed", "Burstable", "BestEffort")
    return state.NodeState(
        at=0,
        node=msgspec.convert(given["node"], core.Node),
        pods=tuple(pods),
        qos_groups={name: name for name in names},
    )


def values(case):
    plan = memory_qos.plan(picture(case.given), settings(case.given["resourceQOSStrategy"]))
    return {
        group: {
            file(edit.role): edit.value for edit in cgroup_properties.numbers(group, wanted, "r")
        }
        for group, wanted in plan.items()
    }


def file(role):
    found: cgroup_layout.File = cgroup_properties.FILES[role]
    return found.value[2]


def recorded(case):
    out = case.expected
    return {
        key: dict(found)
        for part in (out["qos"], out["pods"], out["containers"])
        for key, found in part.items()
    }


@pytest.mark.vectors
def test_the_values_of_every_group():
    def filled(answered):
        return {key: found for key, found in answered.items() if found}

    cases.check(
        "memory_qos",
        lambda case: filled(values(case)),
        lambda case: filled(recorded(case)),
        differences_agent.of("memory_qos"),
    )
