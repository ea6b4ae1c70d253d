"""Pods that wait are woken by an annotation, beside every call, and pages say what is counted."""

import json

import pytest

from api import names
from tests.extender.beside import opened


@pytest.fixture
def options():
    return {}


@pytest.fixture
async def beside(api_server, make, options):
    async with opened(api_server, make, **options) as running:
        yield running


@pytest.mark.parametrize("options", [{"nudges": {"per_second": 0.5, "burst": 1, "most": 20}}])
async def test_waiting_pods_of_one_namespace_do_not_keep_others_from_being_woken(beside):
    for number in range(40):
        await beside.filter(f"f{number}", namespace="flood")
    await beside.filter("p")
    await beside.time.advance(3)
    beside.report("10")
    await beside.until(lambda: beside.app.feeds.reports.get("n1").report.usage[0] == 10000)
    start = beside.time.monotonic()
    await beside.until(lambda: beside.nudged("p"))
    assert beside.time.monotonic() - start < 10


async def test_a_better_report_wakes_the_pod_once(beside):
    await beside.filter("p")
    await beside.time.advance(5)
    assert not beside.nudged("p")
    beside.report("10")
    await beside.until(lambda: beside.nudged("p"))
    first = beside.nudged("p")
    await beside.time.advance(30)
    assert beside.nudged("p") == first
    assert await beside.filter("p") == ["n1"]
    assert beside.app.registry.value("koord_extender_nudged_retry_seconds_count") == 1
    assert beside.app.registry.value("koord_extender_nudges_total", {"because": "fits"}) == 1


async def test_only_a_report_that_helps_wakes_and_only_who_fits(beside):
    await beside.filter("p")
    beside.report("99")
    await beside.until(lambda: beside.app.feeds.reports.get("n1").report.usage[0] == 99000)
    await beside.time.advance(10)
    assert not beside.nudged("p")


async def test_a_preemptor_that_is_gone_is_forgotten(beside):
    beside.server.put("pods", beside.make.pod("p"))
    beside.server.put("pods", beside.make.pod("victim", node="n1"))
    feeds = beside.app.feeds
    await beside.until(lambda: feeds.pods.get("default/p") and feeds.pods.get("default/victim"))
    await beside.preempt("p", "n1", "victim")
    assert beside.app.answers.waits.preemptors
    beside.server.delete("pods", "default/p")
    await beside.until(lambda: not beside.app.answers.waits.preemptors)
    # One that was never seen is forgotten when it would be woken.
    await beside.preempt("q", "n1", "victim")
    assert beside.app.answers.waits.preemptors
    beside.server.delete("pods", "default/victim")
    await beside.until(lambda: not beside.app.answers.waits.preemptors)


@pytest.mark.parametrize("options", [{"nudges": {"per_second": 0.001, "burst": 2}}])
async def test_the_oldest_are_woken_first_and_not_more_than_the_rate_allows(beside):
    for number in range(4):
        await beside.filter(f"p{number}")
    await beside.time.advance(3)
    beside.report("10")
    await beside.until(lambda: beside.nudged("p0") and beside.nudged("p1"))
    await beside.time.advance(30)
    assert not beside.nudged("p2")
    assert not beside.nudged("p3")


async def test_a_node_that_the_scheduler_knew_before_wakes_a_pod_when_it_comes(beside):
    assert await beside.filter("p", "n1", "new") == []
    await beside.time.advance(3)
    beside.server.put("nodes", beside.make.node("new"))
    await beside.until(lambda: beside.nudged("p"))


async def test_a_strategy_that_lends_more_wakes_a_batch_pod(beside):
    def configure(percent):
        rules = {"enable": True, "cpuCalculatePolicy": "overcommitRatio"}
        text = json.dumps(rules | {"overcommitPercent": percent})
        metadata = {"name": names.CONFIG_MAP_SLO, "namespace": names.NAMESPACE, "uid": "c"}
        beside.server.put("configmaps", {"metadata": metadata, "data": {"colocation-config": text}})

    beside.report("1")
    configure(5)
    rules = beside.app.books.cluster.rules
    await beside.until(lambda: rules().strategy)
    await beside.until(lambda: beside.app.feeds.reports.get("n1").report.usage[0] == 1000)
    # 5 % of 128 cores are 6.4.
    job = {"band": "koord-batch", "requests": {"kubernetes.io/batch-cpu": "10000"}}
    assert await beside.filter("job", **job) == []
    await beside.time.advance(5)
    assert not beside.nudged("job")
    configure(10)
    await beside.until(lambda: beside.nudged("job"))
    assert await beside.filter("job", **job) == ["n1"]


@pytest.mark.parametrize("options", [{"nudges": {"enabled": False}}])
async def test_nobody_is_woken_where_that_is_switched_off(beside):
    await beside.filter("p")
    beside.report("10")
    await beside.time.advance(30)
    assert not beside.nudged("p")


async def test_a_wake_up_that_fails_is_tried_again(beside):
    await beside.filter("p")
    await beside.time.advance(3)
    beside.server.fault = "patch"
    beside.report("10")
    await beside.time.advance(5)
    assert not beside.nudged("p")
    beside.server.fault = None
    await beside.until(lambda: beside.nudged("p"))


async def test_a_preemptor_is_woken_when_its_victims_have_left(beside):
    beside.server.put("pods", beside.make.pod("victim", node="n1"))
    beside.server.put("pods", beside.make.pod("p"))
    feeds = beside.app.feeds
    await beside.until(lambda: feeds.pods.get("default/victim") and feeds.pods.get("default/p"))
    await beside.preempt("p", "n1", "victim")
    await beside.time.advance(5)
    assert not beside.nudged("p")
    beside.server.delete("pods", "default/victim")
    await beside.until(lambda: beside.nudged("p"))
    assert beside.app.registry.value("koord_extender_nudges_total", {"because": "victims"}) == 1


async def test_the_pages_say_why_a_pod_waits_and_what_is_counted(beside):
    await beside.filter("p")
    status, told = await beside.page("/debug/explain?pod=default/p")
    assert status == 200
    assert told["tries"] == 1
    (group,) = told["present"]["groups"]
    assert group["nearest"]["node"] == "n1"
    assert group["nearest"]["wouldHelp"]
    beside.server.put("pods", beside.make.pod("web", node="n1", requests={"cpu": "2"}))
    await beside.until(lambda: beside.app.books.cluster.claims_on("n1"))
    status, counted = await beside.page("/apis/v1/nodes/n1")
    assert (counted["pods"], counted["requested"]) == (["default/web"], {"cpu": 2000})
    assert counted["remaining"]["cpu"] == 126000
    status, missing = await beside.page("/apis/v1/nodes/n9")
    assert (status, missing) == (404, {"message": "cannot find node n9"})
    path = "/apis/v1/plugins/LoadAwareScheduling/node"
    _, load = await beside.page(f"{path}/n1")
    assert [pod["pod"] for pod in load["pods"]] == ["default/web"]
    assert load["nodeDelta"] == {"cpu": 1700, "memory": 200 << 20}
    assert load["nodeDeltaPods"] == ["default/web"]
    assert await beside.page(f"{path}/n9") == (200, {})
    _, services = await beside.page("/apis/v1/__services__")
    assert {"/debug/explain", f"{path}/{{node}}"} <= set(services["GET"])
    assert (await beside.page("/apis/v1/plugins/Nonsense/node/n1"))[0] == 404
    assert json.dumps(services)
