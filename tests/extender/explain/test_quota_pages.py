"""Quotas in the paths and the shape that tools for Koordinator's scheduler know."""

import numpy as np
import pytest
from aiohttp import test_utils, web

from api import names
from extender.explain import explanations, pages, refusals
from extender.framework import assembly, verdicts, views
from extender.verbs import request_codec, verbs
from process.configuration import switches
from process.runtime import clock
from tests.extender.clusters import quota_cluster

NOW = quota_cluster.NOW
V1 = "/apis/v1/plugins/ElasticQuota/quotas"


@pytest.fixture
def cluster():
    made = quota_cluster.QuotaCluster()
    made.node()
    made.quota("all", least={"cpu": "40"}, most={"cpu": "50"}, is_parent=True)
    made.quota("team", least={"cpu": "10"}, most={"cpu": "50"}, parent="all")
    made.quota("other", least={"cpu": "30"}, most={"cpu": "50"}, parent="all")
    made.pod("held", "team", node="n1", cpu=15)
    made.pod("mine", "other", node="n1", cpu=30)
    made.pod("waits", "team", cpu=40)
    return made


def _answers(cluster):
    return verbs.Verbs(
        cluster.state,
        cluster.pipeline,
        cluster.projector,
        switches.Switches("extender"),
        explanations.Explanations(),
        [].append,
        request_codec.Reader(cluster.projector),
    )


@pytest.fixture
async def session(cluster):
    app = pages.routes(web.Application(), _answers(cluster), clock.ManualClock(now=NOW))
    async with test_utils.TestClient(test_utils.TestServer(app)) as client:
        yield client


async def _read(session, path):
    async with session.get(path) as answer:
        return answer.status, await answer.json()


async def test_one_quota_is_shown_with_the_figures_that_are_not_empty(session):
    status, found = await _read(session, f"{V1}/team")
    assert status == 200
    assert found == {
        "name": "team",
        "parentName": "all",
        "allowLentResource": True,
        "sharedWeight": {"cpu": "50"},
        "max": {"cpu": "50"},
        "min": {"cpu": "10"},
        "autoScaleMin": {"cpu": "10"},
        "used": {"cpu": "15"},
        "request": {"cpu": "55"},
        "runtime": {"cpu": "20"},
        "childRequest": {"cpu": "55"},
        "allocated": {"cpu": "15"},
        "guaranteed": {"cpu": "15"},
        "selfUsed": {"cpu": "15"},
        "selfRequest": {"cpu": "55"},
    }


async def test_the_pods_of_a_quota_are_shown_where_they_are_asked_for(session):
    _, found = await _read(session, f"{V1}/team?includePods=true")
    assert found["podCache"] == {
        "default/held": {"isAssigned": True, "resource": {"cpu": "15"}},
        "default/waits": {"isAssigned": False, "resource": {"cpu": "40"}},
    }
    _, every = await _read(session, f"{V1}?includePods=true")
    assert [one["name"] for one in every if "podCache" in one] == ["other", "team"]


async def test_all_quotas_are_listed_but_the_root(session):
    _, found = await _read(session, V1)
    assert [one["name"] for one in found] == [
        "all",
        "other",
        "team",
        names.DEFAULT_QUOTA,
        names.SYSTEM_QUOTA,
    ]
    _, foreign = await _read(session, f"{V1}?tree=gpu")
    assert foreign == []


@pytest.mark.parametrize(
    ("path", "message"),
    [
        (f"{V1}/nobody", {"message": "cannot find quota nobody"}),
        (f"{V1}/{names.ROOT_QUOTA}", {"message": f"cannot find quota {names.ROOT_QUOTA}"}),
        (
            "/apis/v1/plugins/Coscheduling/gangs",
            {"error": "Coscheduling is not enabled, or has no gangs"},
        ),
    ],
    ids=["unknown", "root", "another plug-in"],
)
async def test_what_is_not_there_is_named(session, path, message):
    assert await _read(session, path) == (404, message)


async def test_its_paths_are_among_the_services(session):
    _, found = await _read(session, "/apis/v1/__services__")
    assert {V1, f"{V1}/{{name}}"} <= set(found["GET"])


async def test_a_pod_that_no_scheduler_has_tried_is_told_its_quota(session):
    status, found = await _read(session, "/debug/explain?pod=default/waits")
    assert status == 200
    (constraint,) = found["constraints"]
    assert constraint["plugin"] == "ElasticQuota"
    assert constraint["refuses"]
    assert constraint["figures"] == (
        "cpu: 15 used and 40 asked are 35 more than the 20 that team may use now: "
        "10 guaranteed, 10 borrowed"
    )
    assert constraint["wouldHelp"] == [
        "35 cores given back by pods of quota team",
        "a larger min of cpu in quota team, or others that ask for less",
    ]


async def test_a_pod_that_fits_is_told_what_its_quota_leaves(session, cluster):
    cluster.pod("small", "team", cpu=1)
    _, found = await _read(session, "/debug/explain?pod=default/small")
    (constraint,) = found["constraints"]
    assert constraint == {
        "plugin": "ElasticQuota",
        "figures": "quota team lets it run: 15 of 20 cores is used",
        "refuses": False,
        "wouldHelp": [],
    }


class Never:
    """A filter before the quota plug-in that refuses every node."""

    name = "Never"

    def pre_filter(self, pod, view):
        del view
        return pod.key

    def filter(self, prepared, view, rows, now):
        del prepared, view, now
        return verdicts.Verdict(np.ones(rows.size, dtype=np.int16), (verdicts.Status("never"),))


@pytest.mark.parametrize(("cpu", "told"), [(40, True), (1, False)], ids=["refused", "has room"])
def test_quota_is_told_beside_what_refuses_every_node(cluster, cpu, told):
    line = assembly.assemble(lambda _: [Never(), cluster.plugin], {})
    pod = cluster.pod("p", "team", cpu=cpu)
    view = cluster.state.view()
    account = refusals.account(line, views.PodInfo.of(pod), view, np.array([0]), NOW)
    assert account.sentence().startswith("0/1 nodes may take it: 1 never.")
    assert ("Besides, ElasticQuota refuses it: cpu: 15 used" in account.sentence()) is told


def test_a_refusal_by_quota_is_one_reason_for_all_nodes(cluster):
    cluster.node("n2")
    pod = cluster.pods["default/waits"]
    view = cluster.state.view()
    rows = np.array([0, 1])
    account = refusals.account(cluster.pipeline, views.PodInfo.of(pod), view, rows, NOW)
    (group,) = account.groups
    assert (group.reason, group.count) == ("Insufficient quotas", 2)
    assert "borrowed" in group.figures
