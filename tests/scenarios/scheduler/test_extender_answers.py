"""What the answers of an extender to filter and prioritize do to the pod."""

import asyncio

import pytest
import pytest_asyncio
from aiohttp import web

from tests.planes import raw

REASON = "node is loaded above its threshold"
ERROR = "SchedulerError"
BOX = "boxes.example.koord.sh"


def refusing(key):
    async def answer(body):
        return {"NodeNames": [], key: dict.fromkeys(body["NodeNames"], REASON)}

    return answer


async def test_preemption_is_tried_where_a_refusal_may_be_resolved(here, extender):
    await here.node("a")
    extender.filter = refusing("FailedNodes")
    await here.pod("web")
    await here.refused("web", "No preemption victims found for incoming pod")


async def test_preemption_is_not_tried_where_a_refusal_is_final(here, extender):
    await here.node("a")
    extender.filter = refusing("FailedAndUnresolvableNodes")
    await here.pod("web")
    await here.refused("web", "1 Preemption is not helpful for scheduling")


async def test_the_final_refusal_of_two_counts(here, extender):
    await here.node("a")

    async def both(body):
        maybe = dict.fromkeys(body["NodeNames"], "maybe")
        never = dict.fromkeys(body["NodeNames"], "never")
        return {"NodeNames": [], "FailedNodes": maybe, "FailedAndUnresolvableNodes": never}

    extender.filter = both
    await here.pod("web")
    message = await here.refused("web", "0/1 nodes are available: 1 never.")
    assert "maybe" not in message


async def test_an_empty_answer_means_no_node(here, extender):
    await here.node("a")

    async def nothing(body):
        return {"NodeNames": None, "Nodes": None}

    extender.filter = nothing
    await here.pod("web")
    await here.refused("web", "0/1 nodes are available")
    assert not extender.of("bind")


async def test_keys_of_answers_may_be_written_in_any_case(here, extender):
    await here.node("a")
    chosen = await here.node("b")
    await here.known(extender)

    async def accept(body):
        return {"nodenames": body["NodeNames"], "failednodes": None, "error": ""}

    async def score(body):
        return [{"host": name, "score": 10 * (name == chosen)} for name in body["NodeNames"]]

    extender.filter = accept
    extender.prioritize = score
    await here.pod("web")
    assert (await here.bound("web"))["spec"]["nodeName"] == chosen


async def unknown_name(body):
    return {"NodeNames": ["nobody"]}


async def teapot(body):
    return web.Response(status=418, text="{}")


async def no_json(body):
    return web.Response(text="it went well")


async def silent(body):
    await asyncio.sleep(60)


def always(answer):
    """An answer that is the same whatever was asked."""

    async def given(body):
        return answer

    return given


@pytest.mark.parametrize(
    ("answer", "saying"),
    [
        pytest.param(unknown_name, "not found in the input node list", id="unknown name"),
        pytest.param(teapot, "code 418", id="status"),
        pytest.param(no_json, "", id="no json"),
        pytest.param(silent, "", id="no answer"),
        pytest.param(always({"NodeNames": 5}), "cannot unmarshal", id="a number of nodes"),
        pytest.param(always({"NodeNames": [["a"]]}), "cannot unmarshal", id="a list as a name"),
        pytest.param(always({"FailedNodes": ["a"]}), "cannot unmarshal", id="no reasons"),
        pytest.param(
            always({"FailedNodes": {"a": 5}}), "cannot unmarshal", id="a number as a reason"
        ),
        pytest.param(always({"Error": 5}), "cannot unmarshal", id="a number as an error"),
    ],
)
async def test_a_broken_answer_is_an_error_of_the_scheduler(here, extender, answer, saying):
    await here.plane.start_scheduler(extender.url, filter_timeout_seconds=1)
    await here.node("a")
    extender.filter = answer
    await here.pod("web")
    await here.refused("web", saying, reason=ERROR)
    assert not extender.of("bind")
    extender.filter = extender.accept
    await here.bound("web")


async def test_nobody_at_the_address_is_an_error_of_the_scheduler(here, extender):
    await here.plane.start_scheduler("http://127.0.0.1:9")
    await here.node("a")
    await here.pod("web")
    await here.refused("web", reason=ERROR)
    await here.plane.start_scheduler(extender.url)
    await here.bound("web")


async def test_errors_are_retried_slower_each_time(here, extender):
    await here.node("a")

    async def broken(body):
        return {"Error": "the view is stale"}

    extender.filter = broken
    await here.pod("web")
    first, second, third, *_ = await extender.called("filter", "web", times=3)
    # One second, then two; a little less by rounding. Other events may not shorten it.
    assert second.at - first.at > 0.9
    assert third.at - second.at > 1.8


async def test_a_nudge_does_not_shorten_the_pause_after_an_error(here, extender):
    await here.node("a")

    async def broken_once(body):
        if len(extender.of("filter", "web")) == 1:
            return {"Error": "the view is stale"}
        return await extender.accept(body)

    extender.filter = broken_once
    await here.pod("web")
    await here.refused("web", reason=ERROR)
    await here.annotate("web", **{"koord.sh/nudge": "1"})
    await here.bound("web")
    first, second = extender.of("filter", "web")
    assert second.at - first.at > 0.9
    assert second.body["Pod"]["metadata"]["annotations"]["koord.sh/nudge"] == "1"


async def test_a_refused_pod_is_tried_again_when_another_one_leaves(here, extender):
    await here.node("a")
    await here.pod("other")
    await here.bound("other")

    async def only_alone(body):
        pods = (await here.api.get(here.path("pods")))["items"]
        if any(pod["metadata"]["name"] == "other" for pod in pods):
            return await refusing("FailedNodes")(body)
        return await extender.accept(body)

    extender.filter = only_alone
    await here.pod("web")
    await here.refused("web")
    await here.remove("other")
    await here.bound("web")


async def test_many_reasons_are_cut_in_the_event_only(here, extender):
    for number in range(30):
        await here.node(f"n{number}")

    async def each_its_own(body):
        reasons = {name: f"{name} is refused because {'x' * 50}" for name in body["NodeNames"]}
        return {"NodeNames": [], "FailedNodes": reasons}

    await here.known(extender)
    extender.filter = each_its_own
    await here.pod("web")
    message = await here.refused("web", "0/30 nodes are available")
    assert all(f"1 {name} is refused" in message for name in here.nodes)
    note = (await here.told("web", "FailedScheduling"))["note"]
    assert len(note) == 1024
    assert note.endswith(" ...")


async def test_custom_resources_wake_nobody(here, extender, boxes):
    await here.node("a")

    async def until_nudged(body):
        if "koord.sh/nudge" in body["Pod"]["metadata"].get("annotations", {}):
            return await extender.accept(body)
        return {"NodeNames": [], "FailedNodes": dict.fromkeys(body["NodeNames"], REASON)}

    async def calls_around_boxes(name):
        """How often the extender heard of a waiting pod while boxes came, the nudge included."""
        await here.pod(name)
        await here.refused(name)
        before = len(extender.of("filter", name))
        async with here.api.watch(boxes) as stream:
            for number in range(5):
                meta = {"name": f"{name}-{number}"}
                body = {"apiVersion": "example.koord.sh/v1", "kind": "Box", "metadata": meta}
                await here.api.post(boxes, body)
                await stream.until(
                    lambda event, meta=meta: event["object"]["metadata"]["name"] == meta["name"]
                )
        await here.annotate(name, **{"koord.sh/nudge": "1"})
        await here.bound(name)
        return len(extender.of("filter", name)) - before

    extender.filter = until_nudged
    # Nodes and pods of others do wake it, so one undisturbed try of a few is the proof.
    tries = [await calls_around_boxes(f"web-{number}") for number in range(3)]
    assert min(tries) == 1


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(web.Response(status=500), id="status"),
        pytest.param({"not": "a list"}, id="no list"),
        pytest.param([5], id="no object"),
        pytest.param([{"Host": ["a"], "Score": 1}], id="no name"),
        pytest.param([{"Host": "a", "Score": "many"}], id="no number"),
        pytest.param([{"Host": "a", "Score": 1.5}], id="no whole number"),
        pytest.param([{"Score": 1}], id="nobody's score"),
    ],
)
async def test_scores_that_fail_are_left_out_silently(here, extender, answer):
    await here.node("a")
    await here.node("b")
    await here.known(extender)
    extender.prioritize = always(answer)
    await here.pod("web")
    await here.bound("web")
    assert len(extender.of("filter", "web")) == 1
    assert len(extender.of("prioritize", "web")) == 1


@pytest_asyncio.fixture(loop_scope="session")
async def boxes(here):
    """Where objects of a kind of this test's own live."""
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object"}},
    }
    group, plural = BOX.split(".", 1)[1], "boxes"
    names = {"plural": plural, "kind": "Box"}
    spec = {"group": group, "scope": "Namespaced", "names": names, "versions": [version]}
    await here.api.post(definitions, {"metadata": {"name": BOX}, "spec": spec})
    path = here.path(plural, group=f"{group}/v1")

    async def served():
        return (await here.api.call("GET", path)).status == 200

    await raw.eventually(served)
    yield path
    await here.api.delete(f"{definitions}/{BOX}")
