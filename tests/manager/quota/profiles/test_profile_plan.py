"""A root quota is as large as the nodes that its profile selects."""

import pytest

from api import names, resources
from manager.quota.profiles import profile_plan as quota_profile
from manager.quota.profiles import profile_status
from manager.reconcile import actions

PREFIX = "quota.scheduling.koordinator.sh/"
GPU = {"accelerator": "gpu"}


def profile(*, labels=None, annotations=None, **spec):
    written = {
        "quotaName": "gpu-quota",
        "nodeSelector": {"matchLabels": {"accelerator": "gpu"}},
        **spec,
    }
    metadata = {"name": "p", "namespace": "team", "uid": "u"}
    metadata |= {"labels": labels or {}, "annotations": annotations or {}}
    return quota_profile.profile({"metadata": metadata, "spec": written})


def node(cpu, memory, *, accelerator="gpu", schedulable=True, **more):
    offered = {"cpu": cpu * 1000, "memory": memory << 30, **more}
    return quota_profile.Node({"accelerator": accelerator}, offered, schedulable)


NODES = (node(10, 40), node(6, 24, schedulable=False), node(99, 99, accelerator="none"))


def planned(found, there, nodes):
    return quota_profile.planned(found, there, quota_profile.summed(found, found.spec, nodes))


def conditions(found, nodes=NODES, failure=None):
    """Return the conditions of a profile by type, and the events that go with them."""
    sums = None if found.spec is None else quota_profile.summed(found, found.spec, nodes)
    step, *told = profile_status.planned(found, sums, failure, 1_700_000_000.0).steps
    return {one["type"]: one for one in step.body["status"]["conditions"]}, told, step


def stored(step):
    body = step.body
    return quota_profile.present({**body, "metadata": {**body["metadata"], "resourceVersion": "7"}})


def test_a_quota_is_made_for_a_profile() -> None:
    made = planned(profile(resourceRatio="0.8"), None, NODES)
    named, made_quota = made.steps
    tree = quota_profile.tree_of("team", "p")
    assert isinstance(named, actions.Merge)
    assert (named.resource, named.namespace) == (resources.ELASTIC_QUOTA_PROFILES, "team")
    assert named.body == {"metadata": {"labels": {names.LABEL_QUOTA_TREE: tree}}}
    assert isinstance(made_quota, actions.Apply)
    assert (made_quota.name, made_quota.namespace) == ("gpu-quota", "team")
    unlimited = "4611686018427387"
    assert made_quota.body["spec"] == {
        "min": {"cpu": "12800m", "memory": "54975581388"},
        "max": {"cpu": unlimited, "memory": unlimited},
    }
    labels, notes = (made_quota.body["metadata"][part] for part in ("labels", "annotations"))
    assert {key: labels[PREFIX + key] for key in ("profile", "tree-id", "is-root")} == {
        "profile": "p",
        "tree-id": tree,
        "is-root": "true",
    }
    assert notes == {
        PREFIX + "total-resource": '{"cpu":"12800m","memory":"54975581388"}',
        PREFIX + "unschedulable-resource": '{"cpu":"4800m","memory":"20615843020"}',
    }


def test_a_tree_without_a_name_is_the_hash_of_the_key() -> None:
    # Test vectors published with the hash.
    assert quota_profile.hashed(b"") == 0xCBF29CE484222325
    assert quota_profile.hashed(b"a") == 0xAF63DC4C8601EC8C
    assert quota_profile.hashed(b"foobar") == 0x85944171F73967E8
    assert quota_profile.tree_of("team", "p") == str(quota_profile.hashed(b"team/p"))


def test_a_tree_that_is_named_stays_and_is_passed_on() -> None:
    labels = {names.LABEL_QUOTA_TREE: "mine"}
    (step,) = planned(profile(labels=labels), None, NODES).steps
    assert isinstance(step, actions.Apply)
    assert step.body["metadata"]["labels"][names.LABEL_QUOTA_TREE] == "mine"


NAMED = profile(labels={names.LABEL_QUOTA_TREE: "t"}, quotaLabels={"team": "x"})


def test_nothing_is_written_when_all_is_there() -> None:
    (step,) = planned(NAMED, None, NODES).steps
    again = planned(NAMED, stored(step), NODES)
    assert again.steps == ()


def test_what_differs_is_set_and_what_is_not_limited_any_more_is_dropped() -> None:
    (step,) = planned(NAMED, None, NODES).steps
    body = {**step.body, "spec": {**step.body["spec"]}}
    body["spec"]["min"] = {**body["spec"]["min"], "cpu": "1", "nvidia.com/gpu": "4"}
    body["metadata"] = {**body["metadata"], "labels": {"somebody": "else"}}
    (merged,) = planned(NAMED, stored(actions.Apply(None, "", body)), NODES).steps
    assert isinstance(merged, actions.Merge)
    assert merged.body["metadata"]["resourceVersion"] == "7"
    assert merged.body["metadata"]["labels"]["team"] == "x"
    assert "annotations" not in merged.body["metadata"]
    assert merged.body["spec"] == {
        "min": {"cpu": "16", "memory": "64Gi", "nvidia.com/gpu": None},
    }


def test_other_notation_of_the_same_amount_is_no_difference() -> None:
    (step,) = planned(NAMED, None, NODES).steps
    spec = {**step.body["spec"], "min": {"cpu": "16000m", "memory": "65536Mi"}}
    there = stored(actions.Apply(None, "", {**step.body, "spec": spec}))
    assert planned(NAMED, there, NODES).steps == ()


@pytest.mark.parametrize(
    ("annotation", "keys", "doubts"),
    [
        pytest.param('["cpu","nvidia.com/gpu"]', ["cpu", "nvidia.com/gpu"], [], id="listed"),
        pytest.param("[]", ["cpu", "memory"], [], id="empty"),
        pytest.param("cpu", ["cpu", "memory"], ["ResourceKeysIgnored"], id="no-list"),
    ],
)
def test_the_resources_that_count_can_be_listed(annotation, keys, doubts) -> None:
    labels = {names.LABEL_QUOTA_TREE: "t"}
    annotations = {names.ANNOTATION_QUOTA_RESOURCE_KEYS: annotation}
    nodes = (node(1, 1, **{"nvidia.com/gpu": 8}),)
    found = profile(labels=labels, annotations=annotations)
    assert list(planned(found, None, nodes).steps[0].body["spec"]["min"]) == keys
    accepted = conditions(found, nodes)[0]["Accepted"]
    assert ([] if accepted["status"] == "True" else [accepted["reason"]]) == doubts


def test_a_ratio_that_is_none_counts_as_one_and_is_told() -> None:
    old = profile(labels={names.LABEL_QUOTA_TREE: "t"}, resourceRatio="1.5")
    (made,) = planned(old, None, NODES).steps
    assert made.body["spec"]["min"]["cpu"] == "16"
    told = next(one for one in conditions(old)[1] if one.warning)
    assert (told.reason, told.namespace) == ("RatioIgnored", "team")
    assert "1.5" in told.note


def test_no_node_is_no_quota_of_anything() -> None:
    named = profile(labels={names.LABEL_QUOTA_TREE: "t"})
    (step,) = planned(named, None, ()).steps
    assert step.body["spec"]["min"] == {"cpu": "0", "memory": "0"}


def test_a_profile_that_cannot_be_read_says_why() -> None:
    broken = profile(nodeSelector={"matchExpressions": [{"key": "a", "operator": "Near"}]})
    said, told, step = conditions(broken)
    assert [one["status"] for one in said.values()] == ["False", "False"]
    assert {one.reason for one in told} == {"ProfileUnreadable"}
    assert "spec.nodeSelector" in said["Accepted"]["message"]
    assert step.body["status"].keys() == {"conditions"}


def test_the_status_says_what_is_guaranteed_of_how_many_nodes() -> None:
    said, told, step = conditions(NAMED)
    assert (step.resource, step.namespace) == (resources.ELASTIC_QUOTA_PROFILES, "team")
    written = step.body["status"]
    assert written["guaranteed"] == {"cpu": "16", "memory": "64Gi"}
    assert (written["quotaName"], written["nodes"]) == ("gpu-quota", 2)
    assert said["Ready"]["message"] == "quota gpu-quota guarantees cpu:16, memory:64Gi of 2 nodes"
    assert said["NodesSelected"]["message"].startswith("2 nodes are selected, 1 of which")
    assert [one.reason for one in told if not one.warning] == [
        "QuotaProfileAccepted", "NodesSelected", "QuotaKept"
    ]  # fmt: skip


def test_a_status_that_is_true_is_not_written_and_a_resource_that_is_gone_goes() -> None:
    written = conditions(NAMED)[2].body["status"]
    raw = {"metadata": {"name": "p", "labels": {names.LABEL_QUOTA_TREE: "t"}}, "status": written}
    raw["spec"] = {"quotaName": "gpu-quota", "nodeSelector": {"matchLabels": GPU}}
    found = quota_profile.profile(raw)
    sums = quota_profile.summed(found, found.spec, NODES)
    assert profile_status.planned(found, sums, None, 1_700_000_600.0).steps == ()
    raw["status"] = {**written, "guaranteed": {"nvidia.com/gpu": "8"}}
    step = profile_status.planned(quota_profile.profile(raw), sums, None, 0.0).steps[0]
    assert step.body["status"] == {
        "guaranteed": {"cpu": "16", "memory": "64Gi", "nvidia.com/gpu": None}
    }


def test_why_a_quota_is_not_kept_and_that_no_node_is_selected() -> None:
    failure = ("CreateQuotaFailed", "quota gpu-quota could not be written: 403")
    said, told, _ = conditions(NAMED, (), failure)
    assert (said["Ready"]["reason"], said["Ready"]["message"]) == failure
    assert said["NodesSelected"]["reason"] == "NoNodesSelected"
    assert [one.reason for one in told if one.warning] == ["NoNodesSelected", "CreateQuotaFailed"]


def test_one_node_with_thousands_of_resources_keeps_no_quota_from_following():
    odd = node(1, 1, **{f"a.example.com/{at}": 1 for at in range(10_000)})
    found = profile()
    nodes = [node(10, 40, **{"nvidia.com/gpu": 8}), node(6, 24, **{"nvidia.com/gpu": 8}), odd]
    sums = quota_profile.summed(found, found.spec, nodes)
    assert len(sums.total) == 256
    assert sums.total["cpu"] == 17_000
    assert sums.total["nvidia.com/gpu"] == 16
    assert sums.closed.keys() <= sums.total.keys()
