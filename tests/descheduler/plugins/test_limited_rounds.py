"""Plug-ins that look at all pods, in rounds that may move few of them."""

import dataclasses

import pytest

from descheduler import registry
from descheduler.configuration.arguments import models
from descheduler.framework import protocols
from descheduler.framework.planning import limiter
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
                one = asked.send(protocols.Target(min(one.targets)))
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
