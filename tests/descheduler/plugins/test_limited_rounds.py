"""Plug-ins that look at all pods, in rounds that may move few of them."""

import dataclasses
from typing import Any

import pytest

from api.kubernetes import core
from descheduler import registry
from descheduler.configuration.arguments import models
from descheduler.framework import protocols
from descheduler.framework.planning import limiter
from descheduler.model import podinfo
from tests.descheduler import builders
from tests.descheduler.plugins import driving

SELECTOR = {"labelSelector": {"matchLabels": {"app": "web"}}}
APART = [{**SELECTOR, "topologyKey": "kubernetes.io/hostname"}]
TERMS = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": APART}}
EVEN = {**SELECTOR, "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
PLUGINS = (models.DUPLICATES, models.TOPOLOGY_SPREAD, models.INTER_POD_ANTI_AFFINITY)


@dataclasses.dataclass
class Round:
    """One plug-in, and the limits of a round that count what leaves."""

    plugin: object
    view: protocols.View
    limits: limiter.Limiter

    def run(self):
        """Return what is suggested, and what the plug-in leaves."""
        asks = getattr(self.plugin, "balance", None) or self.plugin.deschedule
        asked, found = asks(self.view, protocols.NO_MEMORY), []
        try:
            one = next(asked)
            while True:
                found.append(one)
                if self.limits.refusal(one.pod):
                    one = asked.send(False)
                    continue
                self.limits.count(one.pod)
                one = asked.send(protocols.Target(min(one.targets)) if one.targets else True)
        except StopIteration as end:
            return found, end.value


def made(name, **limits):
    """Six pods on one of seven nodes break the rule of a plug-in."""
    web = [
        builders.pod(f"web-{n}", "n0", labels={"app": "web"}, spread=(EVEN,), affinity=TERMS)
        for n in range(6)
    ]
    nodes = [builders.node(f"n{n}", labels={"zone": f"z{n}"}) for n in range(7)]
    for one in nodes:
        one.labels["kubernetes.io/hostname"] = one.name
    seen = builders.picture_of(nodes, web)
    counted = limiter.Limiter(seen, limiter.Limits(**limits))
    arguments = models.MODELS[name].model_validate({})
    view = dataclasses.replace(driving.view(seen), limits=counted)
    return Round(registry.PLUGINS[name](arguments), view, counted)


@pytest.mark.parametrize("name", PLUGINS)
def test_nothing_is_looked_at_once_no_pod_may_leave_any_more(name):
    found, left = made(name, total=2).run()
    assert len(found) == 2
    (note,) = left[protocols.NOTES]
    assert note == "maximum number of pods reached; what is left was not looked at"


@pytest.mark.parametrize("name", PLUGINS)
def test_pods_that_another_limit_refuses_are_suggested_without_targets(name):
    found, left = made(name, node=2).run()
    assert [len(one.targets) > 0 for one in found[:2]] == [True, True]
    assert len(found) > 2
    assert not any(one.targets for one in found[2:])
    assert protocols.NOTES not in left


@pytest.mark.parametrize("name", PLUGINS)
def test_a_round_without_limits_moves_what_it_has_to(name):
    found, left = made(name).run()
    assert len(found) == 5
    assert protocols.NOTES not in left


AFFINITY = "requiredDuringSchedulingIgnoredDuringExecution"
IN_Z1 = {"key": "zone", "operator": "In", "values": ["z1"]}
WANTS_Z1 = {"nodeAffinity": {AFFINITY: {"nodeSelectorTerms": [{"matchExpressions": [IN_Z1]}]}}}
TAINT = core.Taint(key="dedicated", value="gpu", effect="NoSchedule")
GROUPS = [{"name": zone, "nodeSelector": {"matchLabels": {"zone": zone}}} for zone in ("z0", "z1")]
RESTARTED = (podinfo.Container("main", restarts=99),)
HALF = {"cpu": 50}
EVERY: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    models.CUSTOM_PRIORITY: ({"evictionOrder": GROUPS}, {}),
    models.FRAGMENTATION_AWARE: ({}, {"cpu": "2", "memory": "1Mi"}),
    models.SCALE_DOWN_BIN_PACK: ({"strategy": "EmptyNodes"}, {}),
    models.HIGH_NODE_UTILIZATION: ({"thresholds": {"cpu": 15}}, {"cpu": "500m"}),
    models.LOW_NODE_UTILIZATION: ({"thresholds": HALF, "targetThresholds": HALF}, {"cpu": "2250m"}),
    models.POD_LIFE_TIME: ({"maxPodLifeTimeSeconds": 60}, {}),
    models.FAILED_PODS: ({"minPodLifetimeSeconds": 60}, {"phase": "Failed"}),
    models.DUPLICATES: ({}, {}),
    models.TOO_MANY_RESTARTS: ({"podRestartThreshold": 9}, {"containers": RESTARTED}),
    models.INTER_POD_ANTI_AFFINITY: ({}, {"affinity": TERMS}),
    models.NODE_AFFINITY: ({"nodeAffinityType": [AFFINITY]}, {"affinity": WANTS_Z1}),
    models.NODE_TAINTS: ({}, {}),
    models.TOPOLOGY_SPREAD: ({}, {"spread": (EVEN,)}),
}
"""Arguments of a plug-in, and what its pods have that should leave."""
NO_SUGGESTIONS = {models.MIGRATION_CONTROLLER, models.DEFAULT_EVICTOR}
OWN_LIMITS = {models.LOW_NODE_LOAD}
"""It counts abnormal rounds, whether or not a pod may leave."""


def test_the_table_has_all_plug_ins():
    assert {*EVERY, *NO_SUGGESTIONS, *OWN_LIMITS} == set(registry.PLUGINS)


@pytest.mark.parametrize("name", sorted(EVERY))
def test_every_plug_in_ends_once_no_pod_may_leave_any_more(name):
    arguments, fields = EVERY[name]
    web = [builders.pod(f"web-{n}", "n0", **{"labels": {"app": "web"}, **fields}) for n in range(4)]
    full = builders.pod("full", "n1", cpu="3", memory="40Gi", controller="ReplicaSet/db")
    taints = (TAINT,) if name == models.NODE_TAINTS else ()
    nodes = [
        builders.node("n0", cpu="16", labels={"zone": "z0"}, taints=taints),
        builders.node("n1", cpu="16", labels={"zone": "z1"}),
    ]
    seen = builders.picture_of(nodes, [*web, full])
    given = models.MODELS[name].model_validate(arguments)
    for total, suggested in ((None, True), (1, True), (0, False)):
        counted = limiter.Limiter(seen, limiter.Limits(total=total))
        view = dataclasses.replace(driving.view(seen), limits=counted)
        found, left = Round(registry.PLUGINS[name](given), view, counted).run()
        assert bool(found) is suggested
        # Of a node that is emptied the next pod is refused, and the rest is not asked about.
        assert len(found) <= 2 or total != 1
        assert total != 0 or left[protocols.NOTES]
