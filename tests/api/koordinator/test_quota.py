"""Quotas of three groups become one quota."""

from fractions import Fraction

import pytest

from api import names, resources
from api.koordinator import quota
from api.wire import base, quantity
from tests import builders, processor_time

GI = 1 << 30
SHORT = resources.ELASTIC_QUOTAS_OF_QUOTA_GROUP


def weights(read):
    """What each resource of a quota weighs."""
    return {name: read.weight_of(name) for name in read.cap}


@pytest.mark.parametrize("resource", resources.QUOTA_RESOURCES, ids=lambda item: item.group)
def test_equal_figures_mean_the_same_in_every_group(resource):
    raw = builders.a_quota(
        minimum={"cpu": "2", "memory": "4Gi"},
        maximum={"cpu": "8", "memory": "16Gi"},
        resource=resource,
    )
    read = quota.read_elastic_quota(raw)
    assert read.resource is resource
    assert read.minimum == {"cpu": 2000, "memory": 4 * GI}
    assert read.cap == read.maximum == weights(read) == {"cpu": 8000, "memory": 16 * GI}
    assert read.key == "default/quota"


@pytest.mark.parametrize(
    ("name", "minimum", "cap", "priority", "warned"),
    [
        ("000-elasticquota-batch-team-quota", 100, 200, 10, ["cpu", "memory"]),
        ("000-elasticquota-critical-team-quota", 300, 500, 100, []),
        ("000-elasticquota-team-a-quota", 50, 100, 50, ["cpu", "memory", "pods"]),
    ],
)
def test_hard_bounds_max(manifests, name, minimum, cap, priority, warned):
    read = quota.review_elastic_quota(manifests[name])
    assert read.value.minimum["cpu"] == minimum * 1000
    assert (read.value.cap["cpu"], read.value.cap["memory"]) == (cap * 1000, cap * GI)
    assert read.value.priority == priority
    assert read.warnings == tuple(
        f"spec.hard.{item}: below spec.max.{item}, so the quota stops at spec.hard"
        for item in warned
    )


def test_pods_count_too(manifests):
    read = quota.read_elastic_quota(manifests["000-elasticquota-team-a-quota"])
    assert (read.minimum["pods"], read.maximum["pods"], read.cap["pods"]) == (50, 150, 100)
    assert read.used["pods"] == 80


def test_a_resource_that_only_one_bound_names_keeps_that_bound():
    raw = builders.a_quota(maximum={"cpu": "4"}, hard={"memory": "1Gi"}, resource=SHORT)
    assert quota.read_elastic_quota(raw).cap == {"cpu": 4000, "memory": GI}


@pytest.mark.parametrize(
    ("stated", "bounds", "expected"),
    [
        pytest.param(
            "", {"maximum": {"cpu": "8", "memory": "4"}, "hard": {"cpu": "2", "pods": "3"}},
            {"cpu": 8000, "memory": 4, "pods": 3}, id="max, and hard where max is silent",
        ),
        pytest.param("", {"hard": {"cpu": "2"}}, {"cpu": 2000}, id="hard alone"),
        pytest.param(
            '{"cpu":"1"}', {"maximum": {"cpu": "8", "memory": "4"}, "hard": {"pods": "3"}},
            {"cpu": 1000, "memory": 4, "pods": 3}, id="a weight of one resource leaves the others",
        ),
        pytest.param(
            '{"cpu":"1","memory":"0"}', {"maximum": {"cpu": "8", "memory": "4"}},
            {"cpu": 1000, "memory": 0}, id="a stated 0 borrows nothing",
        ),
        pytest.param(
            '{"cpu":"0"}', {"maximum": {"cpu": "8", "memory": "4"}},
            {"cpu": 8000, "memory": 4}, id="zeros alone state nothing",
        ),
        pytest.param(
            '{"cpu":"1","gpu":"9"}', {"maximum": {"cpu": "8"}},
            {"cpu": 1000}, id="a weight of what is not bounded bounds nothing",
        ),
    ],
)  # fmt: skip
def test_each_resource_weighs_as_stated_or_as_much_as_its_bound(stated, bounds, expected):
    notes = {names.ANNOTATION_QUOTA_WEIGHT: stated}
    raw = builders.a_quota(annotations=notes, resource=SHORT, **bounds)
    assert weights(quota.read_elastic_quota(raw)) == expected


def test_shorthand_quotas_govern_their_namespace(manifests):
    read = quota.read_elastic_quota(manifests["003-elasticquota-test-quota"])
    assert read.namespaces == ("default",)
    published = quota.read_elastic_quota(manifests["004-label-isolation-quota"])
    assert published.namespaces == ()
    bound = quota.read_elastic_quota(manifests["004-namespace-isolation-quota"])
    assert bound.namespaces == ("quota-by-namespace",)


def test_labels_and_annotations():
    raw = builders.a_quota(
        maximum={"cpu": "4"},
        labels={
            names.LABEL_QUOTA_PARENT: "top",
            names.LABEL_QUOTA_IS_PARENT: "true",
            names.LABEL_QUOTA_LENT: "false",
            names.LABEL_QUOTA_TREE: "t1",
            names.LABEL_QUOTA_IS_ROOT: "true",
            names.LABEL_QUOTA_PROFILE: "p",
            names.LABEL_QUOTA_IGNORE_DEFAULT_TREE: "true",
        },
        annotations={
            names.ANNOTATION_QUOTA_WEIGHT: '{"cpu":"2"}',
            names.ANNOTATION_QUOTA_NAMESPACES: '["a","b"]',
        },
    )
    read = quota.read_elastic_quota(raw)
    assert (read.parent, read.tree, read.profile) == ("top", "t1", "p")
    assert read.is_parent
    assert read.is_root
    assert not read.lends
    assert read.ignores_default_tree
    assert (read.weight, read.namespaces) == ({"cpu": 2000}, ("a", "b"))


@pytest.mark.parametrize(
    ("key", "text", "warned"),
    [
        (names.ANNOTATION_QUOTA_WEIGHT, "{", True),
        (names.ANNOTATION_QUOTA_WEIGHT, '{"cpu":"x"}', True),
        (names.ANNOTATION_QUOTA_WEIGHT, '{"cpu":"0"}', False),
        (names.ANNOTATION_QUOTA_WEIGHT, "", False),
        (names.ANNOTATION_QUOTA_NAMESPACES, "a,b", True),
        (names.ANNOTATION_QUOTA_NAMESPACES, "[1]", True),
    ],
)
def test_bad_annotations_count_as_absent(key, text, warned):
    raw = builders.a_quota(maximum={"cpu": "4"}, annotations={key: text})
    read = quota.review_elastic_quota(raw)
    assert (weights(read.value), read.value.namespaces) == ({"cpu": 4000}, ())
    assert bool(read.warnings) is warned
    assert all(key in warning for warning in read.warnings)


def test_outdated_resource_names_are_replaced():
    old = {"koordinator.sh/batch-cpu": "1k", "kubernetes.io/gpu": "100"}
    assert quota.amounts(old) == {names.BATCH_CPU: 1000, names.GPU: 100}
    both = {"koordinator.sh/batch-cpu": "1k", names.BATCH_CPU: "2k"}
    assert quota.amounts(both) == {names.BATCH_CPU: 2000}


def test_other_groups_are_refused():
    raw = builders.a_quota()
    raw["apiVersion"] = "quota.example.com/v1"
    with pytest.raises(base.ReadError, match=r"apiVersion: quota.example.com/v1 is not one of"):
        quota.read_elastic_quota(raw)


def test_bad_amounts_are_named():
    with pytest.raises(base.ReadError, match=r'ElasticQuota quota: spec.min.cpu: "x" is no quant'):
        quota.read_elastic_quota(builders.a_quota(minimum={"cpu": "x"}))


@pytest.mark.parametrize("side", ["minimum", "maximum"])
def test_a_quota_of_more_resources_than_there_are_is_refused(side):
    named = {f"example.com/{at}": "1" for at in range(513)}
    with pytest.raises(base.ReadError, match=r"at most 512 items"):
        quota.read_elastic_quota(builders.a_quota(**{side: named}))


def test_the_sample_profile(manifests):
    profile = quota.read_elastic_quota_profile(
        manifests["002-elasticquotaprofile-gpu-quota-profile"]
    )
    assert (profile.spec.quota_name, profile.ratio) == ("gpu-quota", Fraction(4, 5))
    assert profile.spec.node_selector.match_labels == {"accelerator": "gpu"}


@pytest.mark.parametrize(
    ("written", "ratio", "warned"),
    [
        (None, Fraction(1), False),
        ("0.9", Fraction(9, 10), False),
        ("1", Fraction(1), False),
        ("1.0", Fraction(1), False),
        (".5", Fraction(1, 2), False),
        ("1.5", Fraction(1), True),
        ("0", Fraction(1), True),
        ("-1", Fraction(1), True),
        ("half", Fraction(1), True),
        ("", Fraction(1), True),
        pytest.param(f"0.{'9' * 62}", 1 - Fraction(1, 10**62), False, id="longest"),
        pytest.param(f"0.{'9' * 5000}", Fraction(1), True, id="too long"),
    ],
)
def test_ratios(written, ratio, warned):
    spec = {"quotaName": "q", "nodeSelector": {}, "resourceRatio": written}
    raw = builders.an_object(resources.ELASTIC_QUOTA_PROFILES, "p", "d", spec=spec)
    read = quota.review_elastic_quota_profile(raw)
    assert read.value.ratio == ratio
    assert bool(read.warnings) is warned


def test_an_endless_ratio_is_none():
    spec = {"quotaName": "q", "nodeSelector": {}, "resourceRatio": f".{'1' * 20_000}x"}
    raw = builders.an_object(resources.ELASTIC_QUOTA_PROFILES, "p", "d", spec=spec)
    with processor_time.below(0.1):
        read = quota.review_elastic_quota_profile(raw)
    assert read.value.ratio == 1
    assert len(read.warnings[0]) < 1000


@pytest.mark.parametrize("missing", ["quotaName", "nodeSelector"])
def test_a_profile_needs_a_name_and_nodes(missing):
    spec = {"quotaName": "q", "nodeSelector": {}}
    del spec[missing]
    raw = builders.an_object(resources.ELASTIC_QUOTA_PROFILES, "p", "d", spec=spec)
    with pytest.raises(base.ReadError, match=f"ElasticQuotaProfile p: spec.{missing}: Field req"):
        quota.read_elastic_quota_profile(raw)


def test_figures_are_written_back_as_quantities():
    read = quota.read_elastic_quota(builders.a_quota(minimum={"cpu": "1500m", "memory": "1Gi"}))
    assert quantity.texts(read.minimum) == {"cpu": "1500m", "memory": "1Gi"}


@pytest.mark.parametrize(
    "key",
    [
        names.ANNOTATION_QUOTA_TOTAL,
        names.ANNOTATION_QUOTA_ADMISSION,
        names.ANNOTATION_QUOTA_STRICT_KEYS,
    ],
)
@pytest.mark.parametrize("text", ["{}", "[]", "null", '""', "0", "false", "1"])
def test_an_annotation_that_says_nothing_is_read_as_none(key, text):
    raw = {"metadata": {"name": "q", "annotations": {key: text}}, "spec": {"max": {"cpu": "1"}}}
    found = quota.read_elastic_quota(raw)
    assert not any((found.total, found.admission, found.strict))
