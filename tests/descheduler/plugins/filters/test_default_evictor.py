"""DefaultEvictor as a filter: the protections of the standard descheduler."""

import pytest

from api.kubernetes import core
from descheduler.configuration.arguments import evictor
from descheduler.framework import protocols
from descheduler.framework.filtering import elsewhere, open_jobs, pod_checks
from descheduler.framework.nodes import node_fit
from descheduler.model import objects
from descheduler.plugins.default_evictor import default_evictor as plugin
from tests.descheduler.builders import AN_HOUR_AGO, budget, node, picture_of, pod

EVICT = {"descheduler.alpha.kubernetes.io/evict": ""}
STAY = {"descheduler.alpha.kubernetes.io/prefer-no-eviction": ""}


def filtered(seen, **written):
    arguments = evictor.DefaultEvictorArgs.model_validate(written).complete()
    view = protocols.FilterView(seen, open_jobs.of(seen), node_fit.Table(seen))
    made = plugin.DefaultEvictor(arguments)
    assert isinstance(made, protocols.FilterPlugin)
    return made.for_round(view)


def enabling(name):
    return {"podProtections": {"extraEnabled": [name]}}


def disabling(name):
    return {"podProtections": {"defaultDisabled": [name]}}


BARE = {"controller": ""}
LABEL = {"labelSelector": {"matchLabels": {"a": "b"}}}
ROWS = [
    ("static", {"is_mirror": True}, {}, pod_checks.STATIC, None),
    ("terminating", {"leaves_at": 9.0}, {}, pod_checks.TERMINATING, None),
    ("bare", BARE, {}, pod_checks.BARE, None),
    (
        "bare and failed",
        BARE | {"phase": "Failed"},
        {},
        pod_checks.BARE,
        disabling("FailedBarePods"),
    ),
    ("bare and running", BARE, disabling("FailedBarePods"), pod_checks.BARE, None),
    ("daemon", {"controller": "DaemonSet/d"}, {}, pod_checks.DAEMON, {"evictDaemonSetPods": True}),
    (
        "critical",
        {"priority": 2_000_000_000},
        {},
        pod_checks.CRITICAL,
        {"evictSystemCriticalPods": True},
    ),
    ("threshold", {"priority": 7}, {"priorityThreshold": {"value": 7}}, pod_checks.PRIORITY, {}),
    (
        "threshold by name",
        {"priority": 7},
        {"priorityThreshold": {"name": "high"}},
        pod_checks.PRIORITY,
        {"priorityThreshold": {"value": 8}},
    ),
    (
        "storage",
        {"has_local_storage": True},
        {},
        pod_checks.LOCAL_STORAGE,
        {"evictLocalStoragePods": True},
    ),
    ("claim", {"claims": ("c",)}, enabling("PodsWithPVC"), plugin.CLAIM, {}),
    ("claim as before", {"claims": ("c",)}, {"ignorePvcPods": True}, plugin.CLAIM, {}),
    (
        "resource claim",
        {"has_resource_claims": True},
        enabling("PodsWithResourceClaims"),
        plugin.RESOURCE_CLAIM,
        {},
    ),
    ("labels", {}, LABEL, pod_checks.LABELS, {}),
    ("replicas", {}, {"minReplicas": 2}, plugin.TOO_FEW, {"minReplicas": 1}),
    ("age", {}, {"minPodAge": "2h"}, plugin.YOUNG, {"minPodAge": "30m"}),
    (
        "prefers to stay",
        {"annotations": STAY},
        {"noEvictionPolicy": "Mandatory"},
        plugin.PREFERS,
        {},
    ),
    ("no budget", {}, enabling("PodsWithoutPDB"), plugin.NO_BUDGET, {}),
]


@pytest.mark.parametrize(
    ("fields", "written", "reason", "unless"), [pytest.param(*row[1:], id=row[0]) for row in ROWS]
)
def test_what_protects_a_pod(fields, written, reason, unless):
    one = pod(node="a", **fields)
    seen = picture_of(pods=[one], priorities={"high": 7})
    assert filtered(seen, **written).refusal(one) == reason
    if unless is not None:
        assert filtered(seen, **unless).refusal(one) == ""
    asked = pod(node="a", **fields | {"annotations": fields.get("annotations", {}) | EVICT})
    assert filtered(seen, **written).refusal(asked) == ""


def test_an_ordinary_pod_may_leave():
    one = pod(node="a", created=AN_HOUR_AGO, priority=9000)
    assert filtered(picture_of(pods=[one])).refusal(one) == ""


def test_owners_that_do_not_control_have_no_replicas():
    reference = core.OwnerReference("v1", "Node", "n", "n")
    one = pod(node="a", owners=(reference,))
    assert filtered(picture_of(pods=[one], workloads=[]), minReplicas=2).refusal(one) == ""


def test_budgets_of_the_namespace_that_select_the_pod_count():
    one = pod(node="a", labels={"app": "x"})
    broken = objects.Budget("default/broken", {"matchExpressions": [{"key": "app"}]}, 0)
    around = [budget("other/x", labels={"app": "x"}), broken, budget("y", labels={"app": "y"})]
    without = filtered(picture_of(pods=[one], budgets=around), **enabling("PodsWithoutPDB"))
    assert without.refusal(one) == plugin.NO_BUDGET
    having = picture_of(pods=[one], budgets=[*around, budget("x", labels={"app": "x"})])
    protected = filtered(having, **enabling("PodsWithoutPDB"))
    assert [protected.refusal(each) for each in (one, one)] == ["", ""]


def test_namespaces_and_nodes_are_looked_at_last():
    one = pod(node="a")
    seen = picture_of([node("a"), node("b")], [one], namespaces={"default": {"team": "x"}})
    team = {"namespaceLabelSelector": {"matchLabels": {"team": "y"}}}
    assert filtered(seen, **team).late_refusal(one) == plugin.NAMESPACE
    team = {"namespaceLabelSelector": {"matchLabels": {"team": "x"}}, "nodeFit": True}
    assert filtered(seen, **team).late_refusal(one) == ""
    alone = picture_of([node("a")], [one])
    assert filtered(alone, nodeFit=True).late_refusal(one) == elsewhere.NO_OTHER
