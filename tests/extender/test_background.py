"""Waiting pods are explained in objects and woken by an annotation, beside every call."""

import json

import pytest

from api import names
from extender.explain import explanation_status
from tests import hostile
from tests.extender import running_extender

START = 1782907510.0
UPDATED = "2026-07-01T12:05:00Z"
LATER = "2026-07-01T12:05:30Z"


class Beside(running_extender.Extender):
    """A running extender, one busy node, and the hands of a scheduler and of an agent."""

    async def filter(self, name, *nodes, **more):
        pod = self.make.pod(name, **{"requests": {"cpu": "4"}, **more})
        key = f"{pod['metadata']['namespace']}/{name}"
        if key not in self.server.objects["pods"]:
            self.server.put("pods", pod)
            await self.until(lambda: self.app.feeds.pods.get(key))
        body = {"Pod": pod, "Nodes": None, "NodeNames": list(nodes or ("n1",))}
        async with self.session.post(f"{self.app.url}/filter", json=body) as answer:
            return (await answer.json(content_type=None))["NodeNames"]

    async def preempt(self, name, node, *victims):
        meta = {node: {"Pods": [{"UID": f"uid-{victim}"} for victim in victims]}}
        pod = self.make.pod(name)
        pod["spec"]["priority"] = 10
        if self.app.feeds.reports.get(node).report.usage[0] > 10000:
            self.report("10")
            await self.until(lambda: self.app.feeds.reports.get(node).report.usage[0] == 10000)
        body = {"Pod": pod, "NodeNameToMetaVictims": meta}
        async with self.session.post(f"{self.app.url}/preempt", json=body) as answer:
            return await answer.json(content_type=None)

    def explanation(self, name, namespace="default"):
        return self.server.objects["scheduleexplanations"].get(f"{namespace}/{name}", {})

    def message(self, name, namespace="default"):
        return self.explanation(name, namespace).get("status", {}).get("failedMessage", "")

    def current(self, name, namespace="default"):
        facts = self.explanation(name, namespace).get("status", {}).get("conditions")
        if not isinstance(facts, list):
            return None
        (found,) = facts
        return found["status"], found["reason"]

    def told(self, name):
        """Return the reasons of the events about an explanation, in their order."""
        return [
            event["reason"]
            for event in self.server.events
            if (event["regarding"]["kind"], event["regarding"]["name"])
            == ("ScheduleExplanation", name)
        ]

    def report(self, cpu, updated=LATER):
        self.server.put("nodemetrics", self.make.metric("n1", cpu=cpu, updated=updated))

    async def page(self, path):
        async with self.session.get(self.app.health_url + path) as answer:
            return answer.status, await answer.json()


@pytest.fixture
def options():
    return {}


@pytest.fixture
async def beside(api_server, make, options):
    api_server.put("nodes", make.node("n1"))
    api_server.put("nodemetrics", make.metric("n1", cpu="100", updated=UPDATED))
    async with running_extender.opened(Beside, api_server, make, START, **options) as running:
        yield running


async def test_a_pod_that_waits_is_explained_in_an_object_of_its_own(beside):
    assert await beside.filter("p") == []
    await beside.until(lambda: beside.message("p"))
    found = beside.explanation("p")
    assert found["spec"] == {"questionObjectKey": "default/p", "ttl": "1h0m0s"}
    assert found["metadata"]["labels"] == {names.LABEL_CREATED_BY: "koord-extender"}
    assert "nearest miss n1: cpu: 100 of 128 is used or expected" in beside.message("p")
    (current,) = found["status"]["conditions"]
    assert (current["status"], current["reason"]) == ("True", "Explained")
    await beside.until(lambda: beside.told("p") == ["Explained"])
    # It is confirmed every minute.
    before = found["status"]["lastUpdateTime"]
    await beside.time.advance(70)
    await beside.until(lambda: beside.explanation("p")["status"]["lastUpdateTime"] > before)
    assert beside.explanation("p")["status"]["conditions"] == [current]
    assert beside.told("p") == ["Explained"]


async def test_a_placed_pod_is_told_where_it_is(beside):
    await beside.filter("p")
    await beside.until(lambda: beside.message("p"))
    beside.server.put("pods", beside.make.pod("p", node="n1"))
    await beside.until(lambda: beside.explanation("p")["status"]["schedulable"])
    (domain,) = beside.explanation("p")["status"]["detailedExplanation"]
    (place,) = domain["scheduleExplanation"]["feasibleSchedulingResult"]
    assert (place["name"], place["nodeName"]) == ("p", "n1")
    assert beside.current("p") == ("True", "PodPlaced")
    await beside.until(lambda: beside.told("p") == ["Explained", "PodPlaced"])
    assert len(beside.app.answers.waits) == 0


@pytest.mark.parametrize("fault", ["create", "patch"])
async def test_what_cannot_be_written_now_is_tried_again_soon_and_less_and_less(beside, fault):
    beside.server.fault = fault
    await beside.filter("p")
    await beside.time.advance(10)
    assert not beside.message("p")
    tries = beside.server.faults
    assert 2 <= tries <= 6
    await beside.time.advance(40)
    assert beside.server.faults - tries <= 4, "back-off"
    beside.server.fault = None
    start = beside.time.monotonic()
    await beside.until(lambda: beside.message("p"))
    assert beside.time.monotonic() - start < 60


async def test_other_reasons_are_told_at_once(beside):
    await beside.filter("p")
    await beside.until(lambda: "cpu usage" in beside.message("p"))
    beside.server.put(
        "nodemetrics", beside.make.metric("n1", cpu="1", memory="255Gi", updated=LATER)
    )
    reports = beside.app.feeds.reports
    await beside.until(lambda: reports.get("n1").report.usage[0] == 1000)
    await beside.filter("p")
    start = beside.time.monotonic()
    await beside.until(lambda: "memory usage" in beside.message("p"))
    assert beside.time.monotonic() - start < 30


async def test_answers_from_an_earlier_life_are_corrected(beside):
    """Also where this process has never been asked about the pod."""
    asked = question("p", "default", "default/p")
    asked["status"] = {"schedulable": False, "failedMessage": "then"}
    beside.server.put("scheduleexplanations", asked)
    beside.server.put("pods", beside.make.pod("p", node="n1"))
    await beside.until(lambda: beside.explanation("p")["status"]["schedulable"])


async def test_what_a_person_asks_is_answered_in_place(beside):
    beside.server.put("scheduleexplanations", question("why", "default", "default/p"))
    await beside.filter("p")
    await beside.until(lambda: beside.message("why"))
    assert beside.explanation("p") == {}


async def test_a_question_about_a_pod_that_nobody_judged_says_so(beside):
    beside.server.put("scheduleexplanations", question("why", "default", "default/p"))
    await beside.until(lambda: beside.current("why") == ("False", "PodUnknown"))
    beside.server.put("pods", beside.make.pod("p"))
    await beside.until(lambda: beside.current("why") == ("False", "PodNotJudged"))
    version = beside.explanation("why")["metadata"]["resourceVersion"]
    await beside.time.advance(70)
    assert beside.explanation("why")["metadata"]["resourceVersion"] == version
    await beside.filter("p")
    await beside.until(lambda: beside.current("why") == ("True", "Explained"))
    beside.server.delete("pods", "default/p")
    await beside.until(lambda: beside.current("why") == ("False", "PodUnknown"))
    assert beside.message("why"), "what was true before stays"
    # The last one repeats the first, so that it is counted in it.
    assert beside.told("why") == ["PodUnknown", "PodNotJudged", "Explained"]


DEEP = {"type": "Mine", "status": "True", "reason": "Yes", "message": "", "x": hostile.nested(300)}


@pytest.mark.parametrize("conditions", [{"type": "Current"}, [DEEP]], ids=["no list", "deep"])
async def test_conditions_of_any_shape_are_put_right(beside, conditions):
    asked = question("why", "default", "default/p")
    asked["status"] = {"conditions": conditions}
    beside.server.put("scheduleexplanations", asked)
    await beside.filter("p")
    await beside.until(lambda: beside.current("why") == ("True", "Explained"))


def question(name, namespace, about, **labels):
    return {
        "metadata": {"name": name, "namespace": namespace, "uid": name, "labels": labels},
        "spec": {"questionObjectKey": about},
    }


@pytest.mark.parametrize("about", ["default/p", "p", "", "flood/", "/p", "default/p/x"])
async def test_nobody_asks_about_pods_of_another_namespace(beside, about):
    beside.server.put("scheduleexplanations", question("spy", "flood", about))
    await beside.filter("p")
    await beside.until(lambda: beside.message("spy", "flood") and beside.message("p"))
    assert beside.message("spy", "flood") == explanation_status.FOREIGN
    version = beside.explanation("spy", "flood")["metadata"]["resourceVersion"]
    beside.server.put("pods", beside.make.pod("p", node="n1"))
    await beside.until(lambda: beside.explanation("p")["status"]["schedulable"])
    await beside.time.advance(70)
    assert beside.explanation("spy", "flood")["metadata"]["resourceVersion"] == version
    assert "n1" not in json.dumps(beside.explanation("spy", "flood")["status"])


@pytest.mark.parametrize("options", [{"explanations": {"per_second": 0.2, "burst": 1}}])
async def test_questions_of_one_namespace_do_not_delay_answers_for_another(beside):
    beside.server.put("pods", beside.make.pod("web", node="n1", namespace="flood"))
    await beside.until(lambda: beside.app.feeds.pods.get("flood/web"))
    for number in range(50):
        beside.server.put("scheduleexplanations", question(f"q{number}", "flood", "flood/web"))
    await beside.filter("p")
    start = beside.time.monotonic()
    await beside.until(lambda: beside.message("p"))
    # One answer in five seconds: two for the flood at most before its turn has come.
    assert beside.time.monotonic() - start < 20


@pytest.mark.parametrize("options", [{"explanations": {"most": 4, "burst": 50}}])
async def test_objects_of_one_namespace_do_not_use_up_those_of_others(beside):
    # A label of ours on objects of a tenant counts against that tenant alone.
    for number in range(10):
        labels = {names.LABEL_CREATED_BY: "koord-extender"}
        beside.server.put("scheduleexplanations", question(f"x{number}", "flood", "", **labels))
    for number in range(3):
        await beside.filter(f"p{number}")
    await beside.time.advance(20)
    assert [bool(beside.explanation(f"p{number}")) for number in range(3)] == [True, True, False]


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


@pytest.mark.parametrize("options", [{"explanations": {"create": False}}])
async def test_nothing_is_made_where_that_is_switched_off(beside):
    await beside.filter("p")
    await beside.time.advance(30)
    assert beside.server.objects["scheduleexplanations"] == {}


@pytest.mark.parametrize("options", [{"explanations": {"per_second": 0.001, "burst": 2}}])
async def test_writes_are_held_to_their_rate(beside):
    for number in range(4):
        await beside.filter(f"p{number}")
    await beside.until(lambda: beside.message("p0") and beside.message("p1"))
    await beside.time.advance(30)
    assert len(beside.server.objects["scheduleexplanations"]) == 2


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
