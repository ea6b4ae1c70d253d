"""Pods that wait are explained in objects, and what people ask is answered, beside every call."""

import json

import pytest

from api import names
from extender.explain import explanation_status
from tests import hostile
from tests.extender.beside import LATER, opened


@pytest.fixture
def options():
    return {}


@pytest.fixture
async def beside(api_server, make, options):
    async with opened(api_server, make, **options) as running:
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


async def test_an_answer_about_a_pod_that_had_a_place_is_corrected(beside):
    beside.server.put("scheduleexplanations", question("why", "default", "default/p"))
    beside.server.put("pods", beside.make.pod("p", node="n1"))
    await beside.until(lambda: beside.current("why") == ("True", "PodPlaced"))
    version = beside.explanation("why")["metadata"]["resourceVersion"]
    await beside.time.advance(70)
    assert beside.explanation("why")["metadata"]["resourceVersion"] == version
    beside.server.delete("pods", "default/p")
    await beside.until(lambda: beside.current("why") == ("False", "PodUnknown"))
    assert not beside.explanation("why")["status"]["schedulable"]
    # Its successor has the same name.
    beside.server.put("pods", beside.make.pod("p", uid="second"))
    await beside.until(lambda: beside.current("why") == ("False", "PodNotJudged"))
    await beside.filter("p", uid="second")
    await beside.until(lambda: beside.current("why") == ("True", "Explained"))
    assert not beside.explanation("why")["status"]["schedulable"]


async def test_of_a_pod_that_has_ended_it_is_not_said_that_there_is_none(beside):
    beside.server.put("scheduleexplanations", question("why", "default", "default/p"))
    beside.server.put("pods", beside.make.pod("p", node="n1"))
    await beside.until(lambda: beside.current("why") == ("True", "PodPlaced"))
    beside.server.put("pods", beside.make.pod("p", node="n1", phase="Succeeded"))
    await beside.until(lambda: beside.current("why") == ("False", "PodUnknown"))
    (told,) = beside.explanation("why")["status"]["conditions"]
    assert told["message"] == "there is no pod default/p now, or it has ended"


@pytest.mark.parametrize("made_here", [False, True], ids=["of a person", "made here"])
async def test_an_answer_about_a_pod_that_came_anew_elsewhere_is_corrected(beside, made_here):
    labels = {names.LABEL_CREATED_BY: explanation_status.MAKER} if made_here else {}
    beside.server.put("scheduleexplanations", question("why", "default", "default/p", **labels))
    beside.server.put("pods", beside.make.pod("p", node="n1"))
    await beside.until(lambda: beside.current("why") == ("True", "PodPlaced"))
    # The watch may show both at once.
    beside.server.put("pods", beside.make.pod("p", uid="second", node="n2"))
    await beside.until(lambda: "n2" in json.dumps(beside.explanation("why")["status"]))
    (domain,) = beside.explanation("why")["status"]["detailedExplanation"]
    (place,) = domain["scheduleExplanation"]["feasibleSchedulingResult"]
    assert (place["uid"], place["nodeName"]) == ("second", "n2")


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
