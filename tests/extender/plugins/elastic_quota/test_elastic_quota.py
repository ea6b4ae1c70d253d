"""Pods of a quota use in all what the quota may use, however they are bound and how often."""

import pytest

from api import names
from domain.quota import model
from extender.framework import views
from tests.extender.clusters import quota_cluster

ROOT, DEFAULT = names.ROOT_QUOTA, names.DEFAULT_QUOTA


@pytest.fixture
def make_cluster():
    """How to make a cluster; what it has come to is checked at the end."""
    made = []

    def make(**rules):
        made.append(quota_cluster.QuotaCluster(**rules))
        made[-1].node()
        return made[-1]

    yield make
    assert [one.problems() for one in made] == [[] for _ in made]


@pytest.fixture
def cluster(make_cluster):
    return make_cluster()


# -- PreFilter and Filter ------------------------------------------------------------------


def test_without_any_quota_nothing_is_prepared(cluster):
    pod = cluster.pod("p", cpu=1000)
    assert cluster.plugin.pre_filter(views.PodInfo.of(pod), cluster.state.view()) is None


@pytest.mark.parametrize(
    ("used", "asked", "passes"),
    [(8, 2, True), (8, 3, False), (10, 1, False), (0, 11, False)],
    ids=["exactly", "over", "full", "larger than the quota"],
)
def test_used_and_requested_stay_within_the_limit(cluster, used, asked, passes):
    cluster.quota("team", least={"cpu": "10"}, most={"cpu": "10"})
    if used:
        cluster.pod("held", "team", node="n1", cpu=used)
    assert cluster.passes("p", "team", cpu=asked) is passes


def test_the_refusal_holds_the_sum_in_the_words_that_users_know(cluster):
    cluster.quota("team", least={"cpu": "10"}, most={"cpu": "10"})
    cluster.pod("held", "team", node="n1", cpu=9)
    status = cluster.refusal(cluster.pod("p", "team", cpu=2))
    assert status.reason == "Insufficient quotas"
    assert not status.resolvable
    assert status.text == (
        "Insufficient quotas, quotaName: team, runtime: cpu:10, used: cpu:9, "
        "pod's request: cpu:2, exceedDimensions: [cpu]"
    )


def test_a_resource_that_the_quota_does_not_name_is_unlimited(cluster):
    cluster.quota("team", least={"cpu": "1"}, most={"cpu": "1"})
    assert cluster.passes("p", "team", requests={"memory": "90Gi"})


def test_a_quota_that_is_over_in_memory_refuses_a_pod_that_asks_for_cpu_only(cluster):
    cluster.quota("team", least={"cpu": "10", "memory": "1Gi"}, most={"cpu": "10", "memory": "1Gi"})
    cluster.pod("held", "team", node="n1", requests={"memory": "2Gi"})
    assert not cluster.passes("p", "team", cpu=1)


def test_pods_is_a_resource_of_which_each_takes_one(cluster):
    cluster.quota("team", least={"pods": "2"}, most={"pods": "2"})
    cluster.pod("a", "team", node="n1")
    assert cluster.passes("b", "team")
    cluster.pod("b", "team", node="n1")
    assert not cluster.passes("c", "team")


def test_one_that_asks_may_borrow_what_others_leave_idle(cluster):
    cluster.quota("a", least={"cpu": "40"}, most={"cpu": "100"})
    cluster.quota("b", least={"cpu": "60"}, most={"cpu": "100"})
    assert cluster.passes("p", "a", cpu=100)
    for number in range(6):
        cluster.pod(f"b{number}", "b", cpu=10)
    assert not cluster.passes("p", "a", cpu=41)
    assert cluster.passes("p", "a", cpu=40)


def test_a_pod_that_the_watch_has_not_shown_yet_counts_as_requested(cluster):
    cluster.quota("a", most={"cpu": "100"})
    assert cluster.passes("p", "a", cpu=100), "with no request there would be no runtime quota"


@pytest.mark.parametrize(
    ("quota", "namespace", "bound_to"),
    [
        ("team", "elsewhere", "team"),
        ("", "team", "team"),
        ("", "bound", "team"),
        ("", "elsewhere", DEFAULT),
        ("unknown", "team", DEFAULT),
    ],
    ids=["label", "namespace", "annotation", "default", "unknown label"],
)
def test_the_quota_of_a_pod(cluster, quota, namespace, bound_to):
    cluster.quota(
        "team",
        namespace="team",
        most={"cpu": "1"},
        notes={names.ANNOTATION_QUOTA_NAMESPACES: '["bound"]'},
    )
    cluster.pod("p", quota, namespace=namespace, node="n1", cpu=1)
    assert cluster.used(bound_to) == 1000
    assert cluster.passes("q", quota, namespace=namespace, cpu=1) is (bound_to == DEFAULT)


@pytest.mark.parametrize("quota", [DEFAULT, names.SYSTEM_QUOTA], ids=["default", "system"])
def test_default_and_system_quota_stand_beside_the_tree(make_cluster, quota):
    most = {"default_max": {"cpu": 5000}, "system_max": {"cpu": 5000}}
    cluster = make_cluster(**most)
    cluster.quota("team", least={"cpu": "20"}, most={"cpu": "200"})
    label = "" if quota == DEFAULT else quota
    assert cluster.passes("p", label, cpu=5)
    assert not cluster.passes("p", label, cpu=6)
    cluster.pod("held", label, node="n1", cpu=5)
    assert not cluster.passes("p", label, cpu=1)
    assert cluster.passes("p", "team", cpu=95), "what they use is not shared out"
    assert not cluster.passes("p", "team", cpu=96)


@pytest.mark.parametrize("namespace", ["kube-system", names.NAMESPACE])
def test_pods_without_which_there_is_no_cluster_count_and_are_not_refused(cluster, namespace):
    cluster.quota("team", most={"cpu": "1"})
    cluster.pod("held", "team", namespace=namespace, node="n1", cpu=1)
    assert cluster.passes("p", "team", namespace=namespace, cpu=1)
    assert not cluster.passes("p", "team", cpu=1)


def test_the_namespace_of_koord_is_the_one_that_it_runs_in(make_cluster):
    cluster = make_cluster(home="koord")
    cluster.quota("team", most={"cpu": "1"})
    cluster.pod("held", "team", node="n1", cpu=1)
    assert cluster.passes("p", "team", namespace="koord", cpu=1)
    assert not cluster.passes("p", "team", namespace=names.NAMESPACE, cpu=1)


@pytest.mark.parametrize("checked", [False, True], ids=["leaf only", "with parents"])
def test_parents_are_checked_where_the_arguments_say_so(make_cluster, checked):
    cluster = make_cluster(runtime=False, check_parents=checked)
    cluster.quota("all", most={"cpu": "10"}, is_parent=True)
    cluster.quota("a", most={"cpu": "10"}, parent="all")
    cluster.quota("b", most={"cpu": "10"}, parent="all")
    cluster.pod("held", "a", node="n1", cpu=8)
    assert cluster.passes("p", "b", cpu=3) is not checked
    if checked:
        status = cluster.refusal(cluster.record("p", "b", cpu=3))
        assert status.reason == "Insufficient quotas of a parent"
        assert f"quotaNameTopo: [{ROOT} all b]" in status.text


@pytest.mark.parametrize(("asked", "passes"), [(4, True), (5, False)], ids=["within", "over"])
def test_pods_that_are_never_preempted_stay_within_the_minimum(cluster, asked, passes):
    cluster.quota("team", least={"cpu": "10"}, most={"cpu": "50"})
    cluster.pod("held", "team", node="n1", cpu=6, preemptible=False)
    cluster.pod("other", "team", node="n1", cpu=20)
    assert cluster.passes("p", "team", cpu=asked, preemptible=False) is passes
    assert cluster.passes("p", "team", cpu=asked)


def test_runtime_off_means_that_the_cap_limits(make_cluster):
    cluster = make_cluster(runtime=False)
    cluster.quota("a", least={"cpu": "60"}, most={"cpu": "100"})
    cluster.quota("b", least={"cpu": "40"}, most={"cpu": "100"})
    cluster.pod("wanted", "a", cpu=60)
    assert cluster.passes("p", "b", cpu=100)


# -- who counts ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "end",
    [
        lambda cluster: cluster.pod("held", "team", node="n1", cpu=10, phase="Succeeded"),
        lambda cluster: cluster.pod("held", "team", node="n1", cpu=10, phase="Failed"),
        lambda cluster: cluster.gone("held"),
        lambda cluster: cluster.no_node("n2"),
    ],
    ids=["finished", "evicted", "deleted", "its node is gone"],
)
def test_a_pod_that_ended_is_not_counted(cluster, end):
    cluster.node("n2")
    cluster.quota("team", least={"cpu": "10"}, most={"cpu": "10"})
    cluster.pod("held", "team", node="n2", cpu=10)
    assert not cluster.passes("p", "team")
    end(cluster)
    assert cluster.used("team") == 0
    assert cluster.passes("p", "team", cpu=10)


def test_pods_of_a_node_that_comes_back_count_again(cluster):
    cluster.quota("team", least={"cpu": "10"}, most={"cpu": "10"})
    cluster.pod("early", "team", node="n2", cpu=4)
    assert cluster.used("team") == 0
    cluster.node("n2")
    assert cluster.used("team") == 4000
    cluster.pod("late", "team", node="n2", cpu=4)
    cluster.no_node("n2")
    assert cluster.used("team") == 0
    cluster.node("n2", cpu="7")
    assert cluster.used("team") == 8000


def test_a_terminating_pod_counts_until_it_is_gone(cluster):
    cluster.quota("team", least={"cpu": "10"}, most={"cpu": "10"})
    ending = {"deletionTimestamp": "2026-07-01T12:00:00Z", "deletionGracePeriodSeconds": 30}
    cluster.pod("held", "team", node="n1", cpu=10, metadata=ending)
    assert not cluster.passes("p", "team")
    cluster.gone("held")
    assert cluster.passes("p", "team")


def test_a_pod_that_moves_to_another_quota_counts_once(cluster):
    for name in ("a", "b"):
        cluster.quota(name, least={"cpu": "10"}, most={"cpu": "10"})
    cluster.pod("p", "a", node="n1", cpu=10)
    cluster.pod("p", "b", node="n1", cpu=10)
    assert (cluster.used("a"), cluster.used("b")) == (0, 10000)
    cluster.pod("w", "a", cpu=3)
    cluster.pod("w", "b", cpu=3)
    assert cluster.figures("a").request.get("cpu", 0) == 0
    assert cluster.figures("b").child_request["cpu"] == 13000


def test_pods_follow_quotas_that_come_move_and_go(cluster):
    cluster.pod("p", "team", node="n1", cpu=7)
    cluster.quota("one", least={"cpu": "20"}, most={"cpu": "20"}, is_parent=True)
    cluster.quota("two", least={"cpu": "20"}, most={"cpu": "20"}, is_parent=True)
    cluster.quota("team", least={"cpu": "10"}, most={"cpu": "10"}, parent="one")
    assert (cluster.used("team"), cluster.used("one"), cluster.used(DEFAULT)) == (7000, 7000, 0)
    cluster.quota("team", least={"cpu": "10"}, most={"cpu": "10"}, parent="two")
    assert (cluster.used("one"), cluster.used("two")) == (0, 7000)
    cluster.no_quota("team")
    assert (cluster.used("two"), cluster.used(DEFAULT)) == (0, 7000)


def test_a_bind_charges_the_quota_at_once_and_its_failure_gives_it_back(cluster):
    cluster.quota("team", least={"cpu": "10"}, most={"cpu": "10"})
    one, other = cluster.pod("one", "team", cpu=6), cluster.pod("other", "team", cpu=6)
    before = cluster.state.fingerprint()
    assert cluster.bind(one)
    assert not cluster.bind(other)
    assert cluster.figures("team").child_request["cpu"] == 12000, "it is requested once"
    cluster.books.forget(one.uid)
    assert cluster.state.fingerprint() == before
    assert cluster.bind(other)
    cluster.pod("other", "team", node="n1", cpu=6)
    assert cluster.used("team") == 6000


# -- nominations ---------------------------------------------------------------------------


def test_quota_that_is_kept_for_a_pod_is_used_for_others_only(cluster):
    cluster.quota("team", least={"cpu": "10"}, most={"cpu": "10"})
    kept, other = cluster.pod("kept", "team", cpu=8), cluster.pod("other", "team", cpu=8)
    cluster.books.nominate(kept, "n1", evidence="kept")
    assert cluster.used("team") == 8000
    assert cluster.figures("team").child_request["cpu"] == 16000
    assert cluster.refusal(other) is not None
    assert cluster.refusal(kept) is None
    cluster.node("n2")
    assert cluster.refusal(kept, "n2") is None, "also elsewhere than where it was nominated"
    assert cluster.bind(kept, "n2")
    assert cluster.used("team") == 8000


def test_quota_that_is_kept_for_a_never_preempted_pod_is_its_own(cluster):
    cluster.quota("team", least={"cpu": "10"}, most={"cpu": "10"})
    kept = cluster.pod("kept", "team", cpu=8, preemptible=False)
    cluster.books.nominate(kept, "n1", evidence="kept")
    assert cluster.refusal(kept) is None


@pytest.mark.parametrize(("priority", "passes"), [(9, False), (10, False), (11, True)])
def test_what_is_kept_for_a_pod_of_lower_priority_is_ignored(cluster, priority, passes):
    cluster.quota("team", least={"cpu": "10"}, most={"cpu": "10"})
    kept = cluster.pod("kept", "team", cpu=8, priority=10)
    cluster.books.nominate(kept, "n1", evidence="kept")
    other = cluster.pod("other", "team", cpu=8, priority=priority)
    assert (cluster.refusal(other) is None) is passes


# -- arguments -----------------------------------------------------------------------------


def test_the_arguments_of_the_scheduler_configuration_are_its_rules():
    rules = model.Rules(runtime=False, check_parents=True, default_max={"cpu": 1000})
    cluster = quota_cluster.QuotaCluster(rules)
    assert cluster.value.forest.rules == rules
    assert cluster.value.enforced


def test_pods_are_in_no_forest_until_a_quota_bounds_somebody(cluster):
    """What is kept then is cheaper, and the first quota finds everybody who is there."""
    cluster.node("n2")
    cluster.pod("held", "team", node="n2", cpu=3, preemptible=False)
    cluster.pod("lost", "team", node="nowhere", cpu=3)
    kept = cluster.pod("kept", "team", cpu=2)
    cluster.pod("waits", "team", cpu=1)
    cluster.books.nominate(kept, "n1", evidence="kept")
    assert not cluster.plugin.needs(cluster.value)
    before = cluster.value
    cluster.quota("team", least={"cpu": "10", "pods": "9"}, most={"cpu": "10", "pods": "9"})
    assert cluster.plugin.needs(cluster.value)
    figures = cluster.figures("team")
    assert (figures.used, figures.child_request) == (
        {"cpu": 5000, "pods": 2},
        {"cpu": 6000, "pods": 3},
    )
    assert figures.non_preemptible_used == {"cpu": 3000, "pods": 1}
    assert cluster.problems() == []
    cluster.no_quota("team")
    assert cluster.value == before


def test_a_refusal_says_the_same_of_nodes_where_something_is_kept_for_lesser_pods(cluster):
    """Different words for each node would hide that it is one refusal."""
    cluster.node("n2")
    cluster.quota("team", least={"cpu": "10"}, most={"cpu": "10"})
    cluster.pod("held", "team", node="n1", cpu=9)
    cluster.books.nominate(cluster.pod("kept", "team", cpu=1), "n2", evidence="kept")
    pod = cluster.pod("p", "team", cpu=2, priority=5)
    assert cluster.refusal(pod, "n1") == cluster.refusal(pod, "n2")
    assert "used: cpu:9" in cluster.refusal(pod, "n1").text
