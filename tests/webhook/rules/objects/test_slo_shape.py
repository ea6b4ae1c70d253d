"""What is refused in NodeSLOs, and that nothing is refused which the manager has set."""

import pytest

from api import resources
from webhook import kinds, review

PICTURE = review.Picture((), {}, {}, lambda _: 0)
KIND = resources.NODE_SLOS
THRESHOLDS = "resourceUsedThresholdWithBE"


def node_slo(spec, *managed):
    return {
        "apiVersion": KIND.api_version,
        "kind": KIND.kind,
        "metadata": {"name": "n1", "managedFields": list(managed)},
        "spec": spec,
    }


def entry(manager, spec, **more):
    return {"manager": manager, "operation": "Apply", "fieldsV1": {"f:spec": spec}, **more}


def decided(body, old=None, kind=KIND):
    operation = "CREATE" if old is None else "UPDATE"
    asked = review.Review(operation, "", body, old, resource=(kind.group, kind.plural))
    return kinds.validate(asked, PICTURE)


def faults(body, old=None):
    refusal = decided(body, old).refusal
    return refusal.reasons if refusal is not None else ()


@pytest.mark.parametrize(
    ("field", "value", "allowed"),
    [
        ("cpuEvictBESatisfactionUpperPercent", 101, "in 0..100"),
        ("cpuEvictBESatisfactionUpperPercent", -1, "in 0..100"),
        ("cpuEvictBESatisfactionLowerPercent", 101, "in 0..100"),
        ("cpuEvictBESatisfactionLowerPercent", -1, "in 0..100"),
        ("cpuEvictBEUsageThresholdPercent", 101, "in 0..100"),
        ("cpuEvictBEUsageThresholdPercent", -1, "in 0..100"),
        ("cpuEvictTimeWindowSeconds", -1, "at least 1"),
        ("allocatableEvictPriorityThreshold", 8000, "in 0..7999"),
    ],
)
def test_thresholds_out_of_their_range_are_refused(field, value, allowed):
    (reason,) = faults(node_slo({THRESHOLDS: {field: value}}))
    assert reason.startswith(f"spec.{THRESHOLDS}.{field}: is {value}, must be {allowed}")


def classes(name, part, **settings):
    return {"resourceQOSStrategy": {name: {part: settings}}}


@pytest.mark.parametrize(
    ("spec", "field", "allowed"),
    [
        ({THRESHOLDS: {"cpuSuppressPolicy": "cfsquota"}}, f"{THRESHOLDS}.cpuSuppressPolicy",
         "one of cpuset, cfsQuota"),
        ({THRESHOLDS: {"cpuEvictPolicy": "byLimit"}}, f"{THRESHOLDS}.cpuEvictPolicy",
         "one of evictByRealLimit, evictByAllocatable"),
        ({"resourceQOSStrategy": {"policies": {"cpuPolicy": "groupidentity"}}},
         "resourceQOSStrategy.policies.cpuPolicy", "one of groupIdentity, coreSched"),
        ({"resourceQOSStrategy": {"policies": {"netQOSPolicy": "TC"}}},
         "resourceQOSStrategy.policies.netQOSPolicy", "one of tc, terway-qos"),
        (classes("beClass", "blkioQOS", blocks=[{"type": "device"}, {"type": "disk"}]),
         "resourceQOSStrategy.beClass.blkioQOS.blocks[1].type",
         "one of device, volumegroup, podvolume"),
        (classes("cgroupRoot", "blkIOQOS", blocks=[{"type": "disk"}]),
         "resourceQOSStrategy.cgroupRoot.blkIOQOS.blocks[0].type",
         "one of device, volumegroup, podvolume"),
        ({"hostApplications": [{"name": "a", "qos": "be"}]}, "hostApplications[0].qos",
         "one of LSE, LSR, LS, BE, SYSTEM"),
        ({"hostApplications": [{"name": "a", "priority": "batch"}]},
         "hostApplications[0].priority",
         "one of koord-prod, koord-mid, koord-batch, koord-free"),
    ],
)  # fmt: skip
def test_words_that_are_unknown_are_refused(spec, field, allowed):
    (reason,) = faults(node_slo(spec))
    assert reason.startswith(f"spec.{field}: is ")
    assert f"must be {allowed}" in reason


def test_words_of_the_list_are_not():
    spec = {
        THRESHOLDS: {"cpuSuppressPolicy": "cfsQuota", "cpuEvictPolicy": "evictByAllocatable"},
        "resourceQOSStrategy": {
            "policies": {"cpuPolicy": "coreSched", "netQOSPolicy": "terway-qos"},
            "beClass": {"blkioQOS": {"blocks": [{"name": "a"}, {"type": "podvolume"}]}},
        },
        "hostApplications": [{"qos": "LSR", "priority": "koord-mid"}, {"name": "b", "qos": ""}],
    }
    assert faults(node_slo(spec)) == ()


def test_what_plug_ins_write_is_not_looked_at():
    deep: dict = {}
    for _ in range(500):
        deep = {"a": deep}
    spec = {"extensions": deep, "hostApplications": [{"name": "a", "strategy": deep}]}
    assert faults(node_slo(spec)) == ()


@pytest.mark.parametrize("operation", ["Apply", "Update"])
def test_what_a_manager_has_set_is_judged_in_the_cluster_settings(operation):
    """Refused here, it would hold up every other setting of the node."""
    spec = {THRESHOLDS: {"cpuEvictBEUsageThresholdPercent": 101, "enable": True}}
    field = {f"f:{THRESHOLDS}": {"f:cpuEvictBEUsageThresholdPercent": {}}}
    by_manager = entry("koord-manager", field, operation=operation)
    person = entry("kubectl", {f"f:{THRESHOLDS}": {"f:enable": {}}})
    assert faults(node_slo(spec, by_manager)) == ()
    assert faults(node_slo(spec, by_manager, person)) == ()
    assert faults(node_slo(spec, by_manager, entry("kubectl", field)))
    assert faults(node_slo(spec, entry("kubectl", field)))


def test_lists_that_a_manager_has_set_are_not_looked_into():
    spec = {"hostApplications": [{"name": "a", "qos": "be"}]}
    field = {"f:hostApplications": {}}
    assert faults(node_slo(spec, entry("koord-manager", field))) == ()
    assert faults(node_slo(spec, entry("koord-manager", field), entry("kubectl", field)))


def test_what_was_out_of_range_before_holds_up_no_update():
    wrong = {"cpuEvictTimeWindowSeconds": -1}
    after = node_slo({THRESHOLDS: {**wrong, "enable": True}})
    assert faults(after, old=node_slo({THRESHOLDS: wrong})) == ()


MANAGED = entry(
    "koord-manager",
    {
        f"f:{THRESHOLDS}": {
            "f:cpuSuppressThresholdPercent": {},
            "f:cpuEvictThresholdPercent": {},
            "f:cpuEvictLowerPercent": {},
        }
    },
)


def test_a_value_that_the_manager_will_withdraw_contradicts_no_shorthand():
    spec = {
        THRESHOLDS: {"cpuSuppressThresholdPercent": 65},
        "resourceThresholdStrategy": {"thresholds": {"cpu-suppress-percent": 40}},
    }
    kubectl = entry("kubectl", {"f:resourceThresholdStrategy": {}})
    assert decided(node_slo(spec, MANAGED, kubectl)).warnings == ()
    (warning,) = decided(node_slo(spec, kubectl)).warnings
    assert "cpu-suppress-percent: 40 differs" in warning
    person = entry("kubectl", {f"f:{THRESHOLDS}": {"f:cpuSuppressThresholdPercent": {}}})
    assert decided(node_slo(spec, MANAGED, person)).warnings == (warning,)


def test_contradictions_are_those_of_the_values_that_will_be_used():
    spec = {
        THRESHOLDS: {"cpuEvictThresholdPercent": 90, "cpuEvictLowerPercent": 80},
        "resourceThresholdStrategy": {"thresholds": {"cpu-evict-threshold-percent": 70}},
    }
    (warning,) = decided(node_slo(spec, MANAGED)).warnings
    assert "cpuEvictLowerPercent: 80 is not below cpuEvictThresholdPercent" in warning


def test_an_interval_that_the_manager_will_withdraw_contradicts_no_shorthand():
    kind = resources.NODE_METRICS
    policy = {"f:metricCollectPolicy": {"f:reportIntervalSeconds": {}}}
    body = {
        "metadata": {"name": "n1", "managedFields": [entry("koord-manager", policy)]},
        "spec": {
            "collectionIntervalSeconds": 15,
            "metricCollectPolicy": {"reportIntervalSeconds": 60},
        },
    }
    assert decided(body, kind=kind).warnings == ()
    del body["metadata"]["managedFields"]
    assert decided(body, kind=kind).warnings
