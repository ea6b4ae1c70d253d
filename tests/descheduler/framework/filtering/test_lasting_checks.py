"""Who may not be moved whatever else is going on, in the reference's order."""

import pytest

from api.koordinator.metadata import qos
from descheduler.configuration.arguments import migration, parts
from descheduler.framework.filtering import lasting_checks as checks
from descheduler.framework.filtering import pod_checks
from tests.descheduler.builders import picture_of, pod, workload

EVICT = {"descheduler.alpha.kubernetes.io/evict": "false"}
NEVER = {"scheduling.koordinator.sh/eviction-cost": "2147483647"}


def refusal(one, workloads=(), priorities=None, **written):
    """Return what is said of a pod of a workload of five, unless others are given."""
    known = workloads or [workload("web", 5)]
    seen = picture_of(pods=[one], workloads=known, priorities=priorities or {})
    arguments = migration.MigrationControllerArgs.model_validate(written).complete()
    return checks.LastingChecks(arguments, seen).refusal(one)


def test_an_ordinary_pod_may_move():
    assert refusal(pod(node="n")) == ""


BARE = {"controller": ""}
REFUSED = [
    ("namespace", {}, {"namespaces": {"exclude": ["default"]}}, checks.NAMESPACE, "Namespaces"),
    ("other namespace", {}, {"namespaces": {"include": ["x"]}}, checks.NAMESPACE, "Namespaces"),
    ("eviction cost", {"annotations": NEVER}, {}, checks.NEVER, None),
    ("daemon", {"controller": "DaemonSet/web"}, {}, pod_checks.DAEMON, None),
    ("static", {"is_mirror": True}, {}, pod_checks.STATIC, None),
    ("terminating", {"leaves_at": 1.0}, {}, pod_checks.TERMINATING, None),
    ("bare", BARE, {}, pod_checks.BARE, "BarePods"),
    ("bare and failed", BARE | {"phase": "Failed"}, {}, pod_checks.BARE, "BarePods"),
    ("bare and running", BARE, {"evictFailedBarePods": True}, pod_checks.BARE, "BarePods"),
    ("critical", {"priority": 2_000_000_000}, {}, pod_checks.CRITICAL, "SystemCritical"),
    (
        "threshold",
        {"priority": 100},
        {"priorityThreshold": {"value": 100}},
        pod_checks.PRIORITY,
        "PriorityThreshold",
    ),
    (
        "threshold by name",
        {"priority": 100},
        {"priorityThreshold": {"name": "high"}},
        pod_checks.PRIORITY,
        "PriorityThreshold",
    ),
    (
        "threshold by an unknown name",
        {"priority": -5},
        {"priorityThreshold": {"name": "gone"}},
        pod_checks.PRIORITY,
        "PriorityThreshold",
    ),
    ("storage", {"has_local_storage": True}, {}, pod_checks.LOCAL_STORAGE, "LocalStorage"),
    ("claim", {"claims": ("data",)}, {"ignorePvcPods": True}, checks.CLAIM, "PVC"),
    (
        "labels",
        {},
        {"labelSelector": {"matchLabels": {"a": "b"}}},
        pod_checks.LABELS,
        "LabelSelector",
    ),
]


@pytest.mark.parametrize(
    ("fields", "written", "reason", "gate"), [pytest.param(*row[1:], id=row[0]) for row in REFUSED]
)
def test_what_keeps_a_pod(fields, written, reason, gate):
    priorities = {"high": 100}
    one = pod(node="n", **fields)
    assert refusal(one, priorities=priorities, **written) == reason
    if gate is not None:
        skipping = written | {"skipEvictionGates": [gate]}
        assert refusal(one, priorities=priorities, **skipping) == ""
    asked = pod(node="n", **fields | {"annotations": fields.get("annotations", {}) | EVICT})
    assert refusal(asked, priorities=priorities, **written) == ""


@pytest.mark.parametrize(
    ("fields", "written"),
    [
        pytest.param(BARE, {"evictAllBarePods": True}, id="bare"),
        pytest.param(BARE | {"phase": "Failed"}, {"evictFailedBarePods": True}, id="failed bare"),
        pytest.param({"priority": 2_000_000_000}, {"evictSystemCriticalPods": True}, id="critical"),
        pytest.param(
            {"priority": 100},
            {"evictSystemCriticalPods": True, "priorityThreshold": {"value": 1}},
            id="threshold beside critical pods",
        ),
        pytest.param({"priority": 99}, {"priorityThreshold": {"value": 100}}, id="below"),
        pytest.param({"priority": None}, {"priorityThreshold": {"value": 0}}, id="no priority"),
        pytest.param({"has_local_storage": True}, {"evictLocalStoragePods": True}, id="storage"),
        pytest.param({"claims": ("data",)}, {}, id="claim"),
        pytest.param(
            {"annotations": {"scheduling.koordinator.sh/eviction-cost": "+2147483647"}},
            {},
            id="cost with a sign",
        ),
    ],
)
def test_what_does_not_keep_a_pod(fields, written):
    assert refusal(pod(node="n", **fields), **written) == ""


@pytest.mark.parametrize(
    ("replicas", "written", "reason"),
    [
        (1, {}, checks.TOO_FEW),
        (0, {}, checks.TOO_FEW),
        (2, {}, ""),
        (2, {"maxMigratingPerWorkload": 2}, checks.TOO_FEW),
        (5, {"maxUnavailablePerWorkload": "100%"}, checks.TOO_FEW),
        (5, {"maxUnavailablePerWorkload": "80%"}, ""),
        (1, {"skipCheckExpectedReplicas": True}, ""),
        (1, {"skipEvictionGates": ["ExpectedReplicas"]}, ""),
    ],
)
def test_a_workload_has_to_spare_a_pod(replicas, written, reason):
    assert refusal(pod(node="n"), [workload("web", replicas)], **written) == reason


def test_a_workload_that_is_not_known_spares_none():
    one = pod(node="n", controller="Job/batch")
    assert refusal(one) == checks.UNKNOWN_WORKLOAD
    assert refusal(one, skipCheckExpectedReplicas=True) == ""


def test_arguments_as_models_are_taken_too():
    given = migration.MigrationControllerArgs(namespaces=parts.Namespaces(include=("default",)))
    one = pod(node="n", qos=qos.QoS.LS)
    seen = picture_of(pods=[one], workloads=[workload("web", 2)])
    assert checks.LastingChecks(given.complete(), seen).refusal(one) == ""
