"""Only pods that some node would take now are due, and seldom if that helped nothing before."""

import dataclasses

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from extender import plugin_selection, registry, settings
from extender.framework import assembly
from extender.plugins.batch_fit import batch_fit
from extender.requeue import queueing_hints, unschedulable_pods
from tests import draws

NOW = 1782907200.0


def _followed(picture, most=256):
    """Judgements that hear of every change of a cluster."""
    changes = queueing_hints.Changes(most)
    picture.cluster.followers.append(changes.follow)
    return queueing_hints.Judgements(changes)


def _looks(picture, judgements, now=NOW):
    return queueing_hints.Looks(picture.pipeline, picture.cluster, now, judgements)


def _waiting(picture, *pods):
    """Waiting pods that were asked about on every node."""
    waits, view = unschedulable_pods.UnschedulablePods(), picture.cluster.view()
    for raw in pods:
        rows = np.arange(len(view.names))
        waits.refused(picture.request(raw), unschedulable_pods.attempt_on(view, rows), NOW)
    return tuple(waits)


def _batch(make, name, cpu):
    return make.pod(name, band="koord-batch", requests={"kubernetes.io/batch-cpu": cpu})


def test_nodes_are_judged_again_only_after_a_change_that_could_help(picture, make):
    lends = make.node("n", **{"kubernetes.io/batch-cpu": "1000"})
    picture.add(lends, make.pod("held", node="n", **_BORROWS))
    (waiter,) = _waiting(picture, _batch(make, "p", "1000"))
    judgements = _followed(picture)
    assert _looks(picture, judgements).node_for(waiter) == ""
    picture.add(make.metric("n"), make.pod("other", node="n", requests={"cpu": "1"}))
    assert _looks(picture, judgements, NOW + 1).node_for(waiter) == ""
    assert judgements.made == 1, "neither a report nor a pod that came could help"
    picture.add(make.pod("held", node="n", phase="Succeeded", **_BORROWS))
    assert _looks(picture, judgements, NOW + 2).node_for(waiter) == "n"
    assert judgements.made == 2


_BORROWS = {"band": "koord-batch", "requests": {"kubernetes.io/batch-cpu": "500"}}


@pytest.mark.parametrize("there", [False, True], ids=["without a node", "beside another node"])
def test_a_node_that_came_since_pods_alike_were_judged_is_looked_at(picture, make, there):
    if there:
        picture.add(make.node("before"))
    judgements, gone = _followed(picture), _waiting(picture, make.pod("gone"))[0]
    assert _looks(picture, judgements).node_for(gone) == ("before" if there else "")
    assert judgements.made == 1
    picture.add(make.node("n"))
    rows = np.array([picture.cluster.view().rows["n"]])
    attempt = unschedulable_pods.attempt_on(picture.cluster.view(), rows)
    waits = unschedulable_pods.UnschedulablePods()
    waits.refused(picture.request(make.pod("p")), attempt, NOW)
    (waiter,) = waits
    assert _looks(picture, judgements, NOW + 1).node_for(waiter) == "n"
    assert _looks(picture, judgements, NOW + 1).node_for(waiter) == "n"
    assert judgements.made == 2


def test_pods_that_differ_in_anything_that_a_verdict_depends_on_are_judged_apart(picture, make):
    picture.add(make.node("n", **{"kubernetes.io/batch-cpu": "600"}))
    small, large = _waiting(picture, _batch(make, "small", "500"), _batch(make, "large", "1000"))
    looks = _looks(picture, _followed(picture))
    assert (looks.node_for(small), looks.node_for(large)) == ("n", "")


def test_time_alone_may_end_a_refusal_where_the_plugin_says_so(picture, make):
    chosen = settings.PluginSettings(
        enabled=("LoadAware",),
        load_aware=settings.LoadAwareSettings(enable_schedule_when_node_metrics_expired=True),
    )
    built = registry.build(plugin_selection.select(chosen))
    picture.pipeline.become(registry.assemble(built))
    picture.add(make.node("n"), make.metric("n", cpu="128"))
    (waiter,) = _waiting(picture, make.pod("p"))
    judgements = _followed(picture)
    assert _looks(picture, judgements).node_for(waiter) == ""
    assert _looks(picture, judgements, NOW + 600).node_for(waiter) == "n"


def test_what_fitted_a_moment_ago_is_judged_by_the_present_time(picture, make):
    picture.add(make.node("n"), make.metric("n", cpu="1"))
    (waiter,) = _waiting(picture, make.pod("p"))
    judgements = _followed(picture)
    assert _looks(picture, judgements).node_for(waiter) == "n"
    assert _looks(picture, judgements, NOW + 600).node_for(waiter) == "", "the report is too old"


def test_pods_alike_are_judged_once_a_round_where_no_plugin_says_what_could_help(picture, make):
    picture.pipeline.become(
        dataclasses.replace(assembly.assemble(lambda _: [batch_fit.BatchFit()], {}), hints={})
    )
    picture.add(make.node("n", **{"kubernetes.io/batch-cpu": "100"}))
    waiters = _waiting(picture, *(_batch(make, f"p{number}", "500") for number in range(3)))
    judgements = _followed(picture)
    for round_ in range(2):
        looks = _looks(picture, judgements, NOW + round_)
        assert [looks.node_for(waiter) for waiter in waiters] == ["", "", ""]
        assert judgements.made == round_ + 1


def test_a_change_is_looked_at_once(picture, make):
    class Counting(batch_fit.BatchFit):
        looked_at = 0

        def could_help(self, prepared, delta):
            self.looked_at += 1
            return super().could_help(prepared, delta)

    plugin = Counting()
    picture.pipeline.become(assembly.assemble(lambda _: [plugin], {}))
    picture.add(make.node("n", **{"kubernetes.io/batch-cpu": "100"}))
    waiters = _waiting(picture, *(_batch(make, f"p{number}", "500") for number in range(3)))
    judgements = _followed(picture)
    for waiter in waiters:
        assert _looks(picture, judgements).node_for(waiter) == ""
    picture.add(make.metric("n"))
    for waiter in waiters * 2:
        assert _looks(picture, judgements, NOW + 1).node_for(waiter) == ""
    assert (plugin.looked_at, judgements.made) == (1, 1)


def test_more_changes_than_are_kept_count_as_any_change(picture, make):
    picture.add(make.node("n", **{"kubernetes.io/batch-cpu": "100"}))
    (waiter,) = _waiting(picture, _batch(make, "p", "1000"))
    judgements = _followed(picture, most=2)
    assert _looks(picture, judgements).node_for(waiter) == ""
    for number in range(3):
        picture.add(make.metric("n", cpu=str(number)))
    assert _looks(picture, judgements).node_for(waiter) == ""
    assert judgements.made == 2


CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("node"), st.sampled_from(["a", "b"]), st.sampled_from(["0", "800"])),
        st.tuples(st.just("metric"), st.sampled_from(["a", "b"]), st.sampled_from(["1", "120"])),
        st.tuples(st.just("pod"), st.sampled_from(["a", "b"]), st.sampled_from(["300", "700"])),
        st.tuples(st.just("gone"), st.sampled_from(["a", "b"]), st.just("")),
        st.tuples(st.just("lend"), st.sampled_from([1, 60]), st.just("")),
        st.tuples(st.just("later"), st.just(""), st.sampled_from([1.0, 400.0])),
    ),
    max_size=8,
)


@hypothesis.settings(
    max_examples=draws.at_least(40),
    suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture],
)
@hypothesis.given(changes=CHANGES)
def test_what_is_kept_says_what_judging_anew_says(fresh_picture, make, changes):
    picture, now = fresh_picture(), NOW
    for name, cpu in (("a", "50"), ("b", "120")):
        lends = {"kubernetes.io/batch-cpu": "800"}
        picture.add(make.node(name, **lends), make.metric(name, cpu=cpu))
    picture.add(_batch(make, "on-a", "700") | {"spec": _batch_on(make, "a", "700")})
    pods = [
        make.pod("prod", requests={"cpu": "60"}),
        _batch(make, "small", "200"),
        _batch(make, "large", "600"),
    ]
    waiters, kept = _waiting(picture, *pods), _followed(picture)
    for kind, where, what in [("later", "", 0.0), *changes]:
        name, now = f"on-{where}", now + (what if kind == "later" else 0.0)
        match kind:
            case "node":
                picture.add(make.node(where, **{"kubernetes.io/batch-cpu": what}))
            case "metric":
                picture.add(make.metric(where, cpu=what))
            case "pod":
                picture.add(_batch(make, name, what) | {"spec": _batch_on(make, where, what)})
            case "gone":
                picture.add(make.pod(name, phase="Succeeded"))
            case "lend":
                picture.lend(where)
        found = [_looks(picture, kept, now).node_for(waiter) for waiter in waiters]
        anew = queueing_hints.Judgements(queueing_hints.Changes())
        assert found == [_looks(picture, anew, now).node_for(waiter) for waiter in waiters]


def _batch_on(make, node, cpu):
    return _batch(make, "any", cpu)["spec"] | {"nodeName": node}


def test_a_pod_fits_where_the_scheduler_would_have_taken_it(picture, make):
    for name in ("hot", "cool"):
        picture.add(make.node(name), make.metric(name, cpu="100" if name == "hot" else "1"))
    waits, request = unschedulable_pods.UnschedulablePods(), picture.request(make.pod("p"))
    view = picture.cluster.view()
    asked = unschedulable_pods.attempt_on(view, np.array([view.rows["hot"]]))
    waits.refused(request, asked, NOW)
    (waiter,) = waits
    # The cool node was never asked about: the scheduler refused it.
    judgements = _followed(picture)
    assert _looks(picture, judgements).node_for(waiter) == ""
    picture.add(make.metric("hot", cpu="10"))
    looks = _looks(picture, judgements)
    assert looks.node_for(waiter) == "hot"
    assert looks.node_for(waiter) == "hot"


@pytest.mark.parametrize(
    ("tried", "woken", "wakings_before", "due"),
    [
        pytest.param(100.0, 0.0, 0, True, id="first time"),
        pytest.param(109.0, 0.0, 0, False, id="tried a moment ago"),
        pytest.param(100.0, 105.0, 1, False, id="woken already"),
        pytest.param(106.0, 105.0, 1, True, id="woken in vain"),
        pytest.param(106.0, 105.0, 2, False, id="twice in vain: later"),
        pytest.param(100.0, 99.0, 12, False, id="many times in vain"),
        pytest.param(100.0, 49.0, 12, True, id="but not for ever"),
    ],
)
def test_when_a_pod_is_due(picture, make, tried, woken, wakings_before, due):
    waits = unschedulable_pods.UnschedulablePods()
    waits.refused(picture.request(make.pod("p")), unschedulable_pods.Attempt(np.array([0])), tried)
    (first,) = waits
    waiter = dataclasses.replace(first, woken_at=woken, wakings=wakings_before)
    assert (queueing_hints.due_in(waiter, 2.0, 110.0) <= 0) is due


def test_victims_have_left_when_none_is_on_the_node_any_more(picture, make):
    picture.add(make.node("n"), make.pod("v", node="n"), make.pod("w", node="n"))
    waits = unschedulable_pods.UnschedulablePods()
    victims = {"n": frozenset({"uid-v", "uid-w"})}
    waits.preempts("default/p", unschedulable_pods.Preemptor("uid-p", victims, NOW))
    assert list(queueing_hints.freed(waits, picture.cluster)) == []
    picture.add(make.pod("v", node="n", phase="Succeeded"))
    assert list(queueing_hints.freed(waits, picture.cluster)) == []
    picture.add(make.pod("w", node="n", phase="Succeeded"))
    assert list(queueing_hints.freed(waits, picture.cluster)) == [("default/p", "uid-p", "n")]


def test_little_is_kept_of_waiting_pods_that_ask_for_thousands_of_resources(picture, make):
    picture.add(make.node("n", **{"kubernetes.io/batch-cpu": "0"}))
    judgements = queueing_hints.Judgements(queueing_hints.Changes(), most_listed=5000)
    for number in range(20):
        requests = {f"example.com/{at}": "1" for at in range(999)}
        requests["kubernetes.io/batch-cpu"] = f"{number + 1}"
        pod = make.pod("p", band="koord-batch", requests=requests)
        (waiter,) = _waiting(picture, pod)
        _looks(picture, judgements).node_for(waiter)
    assert judgements.made == 20
    assert len(judgements) <= 5
