"""What the status of a quota says, for each shape."""

import json

import pytest

from api import names, resources
from api.wire import durations
from domain.quota.model import Rules
from manager.quota import objects
from manager.quota.status import status_plan
from manager.reconcile import actions
from tests.manager.quota.conftest import PREFIX, Cluster, a_quota

NOW = 1000.0
SHORT = resources.ELASTIC_QUOTAS_OF_QUOTA_GROUP
BOTH = (SHORT, resources.ELASTIC_QUOTAS_OF_SHORT_GROUP)


def found(cluster: Cluster, name: str) -> objects.QuotaObject:
    return next(one for one in cluster.book.quotas.values() if one.quota.name == name)


def patch(cluster: Cluster, name: str) -> dict:
    """Return the merge patch that would be sent."""
    seen = found(cluster, name)
    return status_plan.difference(seen, status_plan.wanted(seen, cluster.book.forest), NOW)


def conditions(cluster: Cluster, name: str) -> dict[str, tuple[bool, str, str]]:
    seen = found(cluster, name)
    return {
        one.type: (one.holds, one.reason, one.message)
        for one in status_plan.wanted(seen, cluster.book.forest).conditions
    }


def test_the_group_of_the_reference_has_its_figures_in_annotations(cluster: Cluster) -> None:
    cluster.node("n1", cpu="100", memory="100Gi")
    cluster.quota(
        a_quota(
            "parent",
            least={"cpu": "40"},
            most={"cpu": "80"},
            labels={"is-parent": "true"},
        )
    )
    cluster.quota(
        a_quota(
            "leaf",
            least={"cpu": "10"},
            most={"cpu": "50"},
            labels={"parent": "parent", "allow-lent-resource": "false"},
        )
    )
    cluster.pod("runs", quota="leaf", cpu="2", node="n1")
    cluster.pod("waits", quota="leaf", cpu="500m")
    cluster.pod(
        "stays", quota="leaf", cpu="1", node="n1",
        labels={names.LABEL_QUOTA_PREEMPTIBLE: "false"},
    )  # fmt: skip
    body = patch(cluster, "leaf")
    notes = {
        key.removeprefix(PREFIX): json.loads(text)
        for key, text in body["metadata"]["annotations"].items()
    }
    assert notes == {
        "runtime": {"cpu": "10"},
        "request": {"cpu": "10"},
        "child-request": {"cpu": "3500m"},
        "guaranteed": {"cpu": "10"},
        "allocated": {"cpu": "3"},
        "non-preemptible-request": {"cpu": "1"},
        "non-preemptible-used": {"cpu": "1"},
    }
    assert body["status"]["used"] == {"cpu": "3"}
    above = json.loads(
        patch(cluster, "parent")["metadata"]["annotations"][f"{PREFIX}child-request"]
    )
    assert above == {"cpu": "10"}


@pytest.mark.parametrize("group", BOTH, ids=lambda one: one.group)
def test_what_admission_has_charged_to_a_short_shape_is_released(cluster, group) -> None:
    """Pods that are gone leave the account, which only admission opens."""
    key = names.ANNOTATION_QUOTA_CHILD_REQUEST
    cluster.node("n1", cpu="100", memory="100Gi")
    cluster.quota(a_quota("closed", group=group, most={"cpu": "9"}))
    raw = a_quota("open", group=group, most={"cpu": "9"})
    raw["metadata"].setdefault("annotations", {})[key] = '{"cpu":"8"}'
    cluster.quota(raw)
    cluster.pod("runs", quota="open", cpu="2", node="n1")
    assert "metadata" not in patch(cluster, "closed")
    assert patch(cluster, "open")["metadata"]["annotations"] == {key: '{"cpu":"2"}'}


@pytest.mark.parametrize("group", BOTH, ids=lambda one: one.group)
def test_the_short_groups_have_their_figures_in_the_status(
    cluster: Cluster, group: resources.Resource
) -> None:
    cluster.node("n1", cpu="500", memory="500Gi")
    amounts = {"cpu": "100", "memory": "100Gi", "pods": "10"}
    cluster.quota(
        a_quota(
            "team-quota", "team", group=group, least={"cpu": "50"},
            most={"cpu": "200", "memory": "150Gi", "pods": "20"}, hard=amounts,
        )
    )  # fmt: skip
    for number in range(3):
        cluster.pod(f"p{number}", "team", cpu="40", memory="1Gi", node="n1")
    body = patch(cluster, "team-quota")
    assert "metadata" not in body
    used = {"cpu": "120", "memory": "3Gi", "pods": "3"}
    assert body["status"]["used"] == used
    assert body["status"]["podAllocatedQuota"] == used
    assert body["status"]["allocatedQuota"] == {"cpu": "100", "memory": "3Gi", "pods": "3"}
    holds, reason, message = conditions(cluster, "team-quota")[status_plan.WITHIN_LIMIT]
    assert (holds, reason) == (False, status_plan.OVER_ENTITLEMENT)
    assert "use cpu:120 and may use cpu:100 now" in message


def test_an_illustrated_status_is_replaced_by_figures_within_hard(cluster: Cluster) -> None:
    hard = {"cpu": "100", "memory": "100Gi", "pods": "100"}
    illustrated = {
        "allocatedQuota": {"cpu": "150", "memory": "120Gi", "pods": "100"},
        "used": {"cpu": "120", "memory": "100Gi", "pods": "80"},
        "podAllocatedQuota": {"cpu": "120", "memory": "100Gi", "pods": "80"},
    }
    cluster.node("n1", cpu="500", memory="500Gi")
    cluster.quota(
        a_quota(
            "team-a-quota", "team-a", group=SHORT, hard=hard,
            least={"cpu": "50", "memory": "50Gi", "pods": "50"},
            most={"cpu": "200", "memory": "150Gi", "pods": "150"}, status=illustrated,
        )
    )  # fmt: skip
    status = status_plan.wanted(found(cluster, "team-a-quota"), cluster.book.forest)
    ceiling = objects.amounts_of(hard)
    for amounts in status.lists.values():
        assert all(amount <= ceiling[key] for key, amount in objects.amounts_of(amounts).items())
    body = patch(cluster, "team-a-quota")
    assert body["status"]["used"] == {"cpu": "0", "memory": "0", "pods": "0"}


def test_nothing_is_written_where_the_object_says_it_already(cluster: Cluster) -> None:
    cluster.node("n1")
    raw = a_quota("q", least={"cpu": "1"}, most={"cpu": "9"})
    cluster.quota(raw)
    body = patch(cluster, "q")
    raw["metadata"]["annotations"] |= body["metadata"]["annotations"]
    raw["status"] = body["status"]
    cluster.quota(raw)
    seen = found(cluster, "q")
    status = status_plan.wanted(seen, cluster.book.forest)
    assert status_plan.difference(seen, status, NOW + 99) == {}
    assert status_plan.planned(seen, status, NOW + 99).steps == ()


def test_other_notations_of_the_same_amounts_stay(cluster: Cluster) -> None:
    cluster.node("n1")
    cluster.quota(a_quota("q", least={"cpu": "1"}, most={"cpu": "9"}))
    cluster.pod("p", quota="q", cpu="2", node="n1")
    body = patch(cluster, "q")
    raw = a_quota("q", least={"cpu": "1"}, most={"cpu": "9"})
    raw["metadata"]["annotations"] |= body["metadata"]["annotations"] | {
        names.ANNOTATION_QUOTA_CHILD_REQUEST: ' {"cpu": "2000m"}'
    }
    raw["status"] = {**body["status"], "used": {"cpu": "2000m"}}
    cluster.quota(raw)
    assert patch(cluster, "q") == {}


def test_what_is_no_figure_any_more_goes_and_what_others_wrote_stays(cluster: Cluster) -> None:
    foreign = {"type": "Synced", "status": "True"}
    cluster.quota(
        a_quota(
            "q", group=SHORT, most={"cpu": "9"},
            status={"used": {"cpu": "x", "gpu": "3"}, "conditions": [foreign], "note": "mine"},
        )
    )  # fmt: skip
    body = patch(cluster, "q")["status"]
    assert body["used"] == {"cpu": "0", "gpu": None}
    assert body["conditions"][0] == foreign
    assert "note" not in body


@pytest.mark.parametrize("status", ["text", 7, ["a"], {"used": {"cpu": {}}}, {"used": 5}])
def test_whatever_status_somebody_wrote_the_quota_counts(cluster: Cluster, status) -> None:
    raw = a_quota("q", group=SHORT, most={"cpu": "9"})
    raw["status"] = status
    cluster.quota(raw)
    assert patch(cluster, "q")["status"]["used"] == {"cpu": "0"}


def test_a_condition_keeps_its_moment_while_it_stays_what_it_is(cluster: Cluster) -> None:
    since = durations.moment(5.0)
    there = [{"type": status_plan.EFFECTIVE, "status": "True", "lastTransitionTime": since}]
    cluster.quota(a_quota("q", most={"cpu": "9"}, status={"conditions": there}))
    written = {one["type"]: one for one in patch(cluster, "q")["status"]["conditions"]}
    assert written[status_plan.EFFECTIVE]["lastTransitionTime"] == since
    assert written[status_plan.WITHIN_LIMIT]["lastTransitionTime"] == durations.moment(NOW)


def test_the_younger_of_two_objects_of_one_name_is_told_so(cluster: Cluster) -> None:
    cluster.quota(a_quota("q", "old", most={"cpu": "9"}, created=1.0))
    cluster.quota(a_quota("q", "new", group=SHORT, most={"cpu": "5"}, created=2.0))
    cluster.pod("p", quota="q", cpu="2")
    seen = cluster.book.quotas[f"{SHORT.group}/new/q"]
    plan = status_plan.planned(seen, status_plan.wanted(seen, cluster.book.forest), NOW)
    merge, told = plan.steps
    assert isinstance(merge, actions.Merge)
    assert isinstance(told, actions.Tell)
    assert (told.reason, told.warning) == (status_plan.NAME_CONFLICT, True)
    assert "older ElasticQuota scheduling.sigs.k8s.io/old/q" in told.note
    (effective,) = merge.body["status"]["conditions"]
    assert (effective["type"], effective["status"]) == (status_plan.EFFECTIVE, "False")
    elder = cluster.book.quotas["scheduling.sigs.k8s.io/old/q"]
    status = status_plan.wanted(elder, cluster.book.forest)
    assert all(one.holds for one in status.conditions)


@pytest.mark.parametrize(
    ("labels", "reason", "part"),
    [
        pytest.param(
            {"parent": "nobody"}, status_plan.PARENT_NOT_FOUND, "no quota nobody", id="unknown"
        ),
        pytest.param(
            {"parent": "other", "tree-id": "mine"},
            status_plan.PARENT_REFUSED,
            "another tree",
            id="tree",
        ),
        pytest.param(
            {"parent": "below"}, status_plan.PARENT_REFUSED, "below this quota", id="cycle"
        ),
    ],
)
def test_a_parent_that_does_not_fit_is_told(cluster: Cluster, labels, reason, part) -> None:
    cluster.quota(a_quota("other", labels={"is-parent": "true", "tree-id": "theirs"}))
    cluster.quota(a_quota("below", labels={"parent": "q"}))
    cluster.quota(a_quota("q", labels={"is-parent": "true", **labels}))
    holds, said, message = conditions(cluster, "q")[status_plan.PARENT_FOUND]
    assert (holds, said) == (False, reason)
    assert part in message


@pytest.mark.parametrize(
    ("rules", "ending"),
    [
        pytest.param(Rules(), "scaled down while they ask for more", id="scaled"),
        pytest.param(Rules(scale_min=False), "raise its min or lower theirs", id="kept"),
    ],
)
def test_a_min_below_that_of_the_children_is_told(rules: Rules, ending: str) -> None:
    cluster = Cluster(rules)
    cluster.quota(
        a_quota("p", least={"cpu": "10"}, most={"cpu": "99"}, labels={"is-parent": "true"})
    )
    for child in ("a", "b"):
        cluster.quota(a_quota(child, least={"cpu": "8"}, most={"cpu": "9"}, labels={"parent": "p"}))
    holds, reason, message = conditions(cluster, "p")[status_plan.MINIMUMS_FIT]
    assert (holds, reason) == (False, status_plan.MINIMUMS_EXCEEDED)
    assert message.startswith("the children guarantee cpu:16 together, its own min is cpu:10;")
    assert message.endswith(ending)


def test_the_root_quota_says_what_the_cluster_has(cluster: Cluster) -> None:
    cluster.node("n1", cpu="10", memory="1Gi")
    cluster.quota(a_quota(names.ROOT_QUOTA, names.NAMESPACE, labels={"is-parent": "true"}))
    cluster.quota(a_quota("a", least={"cpu": "8"}, most={"cpu": "9"}))
    cluster.quota(a_quota("b", least={"cpu": "8"}, most={"cpu": "9"}))
    cluster.quota(a_quota("t", least={"cpu": "8"}, most={"cpu": "9"}, labels={"tree-id": "x"}))
    cluster.pod("p", quota="a", cpu="2", node="n1")
    body = patch(cluster, names.ROOT_QUOTA)
    assert body["status"]["used"] == {"cpu": "2"}
    runtime = body["metadata"]["annotations"][names.ANNOTATION_QUOTA_RUNTIME]
    assert json.loads(runtime) == {"cpu": "10", "memory": "1Gi", "pods": "110"}
    holds, _, message = conditions(cluster, names.ROOT_QUOTA)[status_plan.MINIMUMS_FIT]
    assert not holds
    assert "guarantee cpu:16 together, the cluster has cpu:10" in message


def test_one_node_or_quota_with_thousands_of_resources_leaves_the_root_quota_writable(
    cluster: Cluster,
) -> None:
    odd = {f"a.example.com/{'x' * 40}-{number}": "1" for number in range(9000)}
    long = {f"b.example.com/{'x' * 60}-{number}": "1" for number in range(500)}
    cluster.node("n1", cpu="10", memory="1Gi", extra=odd)
    cluster.quota(a_quota(names.ROOT_QUOTA, names.NAMESPACE, labels={"is-parent": "true"}))
    cluster.quota(a_quota("a", least={"cpu": "8"}, most={"cpu": "9", "x.example.com/gpu": "4"}))
    cluster.quota(a_quota("b", least=long, most=long))
    cluster.quota(a_quota("c", least={}, most={"x.example.com/gpu": "4"}))
    notes = patch(cluster, names.ROOT_QUOTA)["metadata"]["annotations"]
    assert sum(map(len, notes.values())) < 128 << 10
    runtime = json.loads(notes[names.ANNOTATION_QUOTA_RUNTIME])
    assert {key: runtime[key] for key in ("cpu", "memory", "pods")} == {
        "cpu": "10", "memory": "1Gi", "pods": "110",
    }  # fmt: skip
    request = json.loads(notes[names.ANNOTATION_QUOTA_REQUEST])
    assert {"cpu", "x.example.com/gpu"} <= request.keys()


def test_a_message_names_boundedly_many_resources(cluster: Cluster) -> None:
    many = {f"example.com/{'x' * 40}-{number}": "1" for number in range(300)}
    cluster.quota(a_quota("p", least={}, most=many, labels={"is-parent": "true"}))
    cluster.quota(a_quota("c", least=many, most=many, labels={"parent": "p"}))
    _, _, message = conditions(cluster, "p")[status_plan.MINIMUMS_FIT]
    assert "and 292 more" in message
    assert len(message) < 2048


def test_a_crd_with_a_subresource_gets_its_status_there() -> None:
    resource = resources.ELASTIC_QUOTAS
    meta = {"annotations": {"a": "1"}, "resourceVersion": "7"}
    whole = actions.Merge(resource, "q", {"metadata": meta, "status": {"used": {}}}, "ns")
    split = status_plan.by_subresource(actions.Plan("m", (whole,))).steps
    assert split == (
        actions.Merge(resource, "q", {"metadata": meta}, "ns"),
        actions.PatchStatus(resource, "q", {"status": {"used": {}}}, "ns"),
    )
    alone = {"metadata": {"resourceVersion": "7"}, "status": {"used": {}}}
    split = status_plan.by_subresource(
        actions.Plan("m", (actions.Merge(resource, "q", alone, "ns"),))
    ).steps
    assert split == (
        actions.PatchStatus(
            resource, "q", {"status": {"used": {}}, "metadata": alone["metadata"]}, "ns"
        ),
    )


@pytest.mark.parametrize(
    ("present", "text", "more"),
    [
        ('{"cpu":"2"}', '{"cpu":"1"}', True),
        ('{"cpu":"1"}', '{"cpu":"1000m"}', False),
        ('{"gpu":"1"}', "{}", True),
        ("", "{}", False),
        ("[]", "{}", False),
        ('{"cpu":[]}', "{}", False),
        ('{"cpu":{"a":1}}', "{}", False),
    ],
)
def test_a_figure_that_was_raised_is_seen(present: str, text: str, more: bool) -> None:
    assert status_plan.exceeds(present, text) is more
