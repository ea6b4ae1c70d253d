"""The whole extender over HTTP against a small API server."""

import asyncio
import io
import json

import aiohttp
import pytest

from api import names
from extender import app, settings
from extender.state import invariants
from process.runtime import clock
from tests import patience

LATER = "2026-07-01T12:05:00Z"
BATCH_10 = {"kubernetes.io/batch-cpu": "10000"}
STRATEGY = {"enable": True, "cpuCalculatePolicy": "overcommitRatio", "overcommitPercent": 30}


def _config_map(name, data):
    return {"metadata": {"name": name, "namespace": names.NAMESPACE, "uid": name}, "data": data}


def _settings(**more):
    anywhere = {"port": 0, "linger_seconds": 0}
    # No test waits longer than this for a proof that fails.
    proof = {"proof_seconds": 0.3}
    return settings.Settings(server=anywhere, health=anywhere, freshness=proof, **more)


class Running:
    """A running extender with a client that calls it as a scheduler does."""

    def __init__(self, running, session, server, time=None):
        self.app, self.session, self.server, self.time = running, session, server, time

    async def until(self, condition):
        await patience.arrives(condition)

    async def ready(self):
        await self.until(lambda: self.app.health.ready)

    async def call(self, verb, body):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        url = f"{self.app.url}/{verb}"
        async with self.session.post(url, data=io.BytesIO(data)) as answer:
            raw = await answer.read()
            assert answer.headers["Content-Length"] == str(len(raw))
            return answer.status, json.loads(raw) if answer.status == 200 else raw

    async def filter(self, pod, *nodes):
        body = {"Pod": pod, "Nodes": None, "NodeNames": list(nodes)}
        return (await self.call("filter", body))[1]

    async def bind(self, name, node):
        body = {
            "PodName": name,
            "PodNamespace": "default",
            "PodUID": f"uid-{name}",
            "Node": node,
        }
        return (await self.call("bind", body))[1]["Error"]

    async def page(self, path):
        async with self.session.get(self.app.health_url + path) as answer:
            return answer.status, await answer.text()


@pytest.fixture
async def running(api_server, make):
    for name, requested in (("n1", "100"), ("n2", "80")):
        api_server.put("nodes", make.node(name))
        api_server.put("nodemetrics", make.metric(name, updated=LATER, pods=[f"online-{name}"]))
        online = make.pod(f"online-{name}", node=name, requests={"cpu": requested})
        api_server.put("pods", online)
    strategy = {"colocation-config": json.dumps(STRATEGY)}
    api_server.put("configmaps", _config_map("slo-controller-config", strategy))
    time = clock.ManualClock(now=1782907510.0)
    async with (
        api_server.serving() as access,
        aiohttp.ClientSession() as session,
        app.running(_settings(), access=access, clock=time) as made,
    ):
        extender = Running(made, session, api_server, time)
        await extender.ready()
        yield extender
        # Wait for the last echo, then everything must add up.
        await extender.until(lambda: not made.books.assumptions or not api_server.echo)
        assert invariants.check(made.books, made.feeds.pods) == []


async def test_the_two_candidates_of_the_example_give_8_4_and_14_4(running, make):
    job = make.pod("job", band="koord-batch", requests=BATCH_10)
    running.server.put("pods", job)
    assert (await running.filter(job, "n1", "n2"))["NodeNames"] == ["n2"]
    refused = await running.filter(job, "n1")
    assert list(refused["FailedAndUnresolvableNodes"]) == ["n1"]
    status, text = await running.page("/debug/explain?pod=default/job")
    assert status == 200
    assert "asks 10, 8.4 may be lent: (128 - 100) * 30 % - 0 lent" in json.loads(text)["sentence"]
    assert await running.bind("job", "n1") != ""
    assert await running.bind("job", "n2") == ""
    stored = running.server.objects["pods"]["default/job"]
    payload = json.loads(stored["metadata"]["annotations"][names.PLACEMENT])
    assert (payload["v"], payload["node"]) == (1, "n2")
    second = make.pod("second", band="koord-batch", requests=BATCH_10)
    assert (await running.filter(second, "n1", "n2"))["NodeNames"] == []

    def told():
        return [one for one in running.server.events if one["regarding"]["name"] == "second"]

    await running.until(told)
    event = told()[0]
    assert event["reason"] == "NodesRefused"
    assert "asks 10, 4.4 may be lent: (128 - 80) * 30 % - 10 lent" in event["note"]


async def _silence(running):
    """Let more than `freshness.idleSeconds` pass without a call."""
    await running.time.advance(11)


async def test_after_a_silence_the_echo_of_a_write_proves_the_view_and_no_list(running, make):
    job = make.pod("job", band="koord-batch", requests=BATCH_10)
    assert (await running.filter(job, "n2"))["NodeNames"] == ["n2"]
    lists, written = list(running.server.lists), set()
    for _ in range(2):
        await _silence(running)
        running.server.put("nodemetrics", make.metric("n1", updated=LATER))
        assert (await running.filter(job, "n2"))["NodeNames"] == ["n2"]
        own = running.server.objects["pods"][f"{names.NAMESPACE}/koord-extender"]
        written.add(own["metadata"]["annotations"][names.ANNOTATION_BARRIER])
    assert len(written) == 2
    assert running.server.lists == lists
    proofs = running.app.registry.value(
        "koord_extender_consistency_check_seconds_count", {"outcome": "current"}
    )
    assert proofs == 2


async def test_a_pod_that_another_extender_bound_in_the_silence_counts_in_the_answer(running, make):
    job = make.pod("job", band="koord-batch", requests=BATCH_10)
    assert (await running.filter(job, "n2"))["NodeNames"] == ["n2"]
    await _silence(running)
    running.server.fall_behind()
    theirs = make.pod("theirs", band="koord-batch", node="n2", requests=BATCH_10)
    running.server.put("pods", theirs)
    assert "could not be proven current" in (await running.filter(job, "n2"))["Error"]
    running.server.catch_up()
    answer = await running.filter(job, "n2")
    assert (answer["Error"], answer["NodeNames"]) == ("", [])


async def test_prioritize_and_preempt_answer_over_http(running, make):
    running.server.put("nodemetrics", make.metric("n1", cpu="60", updated=LATER))
    await running.until(lambda: running.app.feeds.reports.get("n1").report.usage[0] == 60000)
    body = {"Pod": make.pod("p"), "Nodes": None, "NodeNames": ["n1", "n2"]}
    status, answer = await running.call("prioritize", body)
    assert status == 200
    assert [entry["Host"] for entry in answer] == ["n2"]
    running.server.put("pods", make.pod("low", node="n2"))
    await running.until(lambda: running.app.feeds.pods.get("default/low"))
    victims = {"n2": {"Pods": [{"UID": "uid-low"}], "NumPDBViolations": 0}}
    body = {"Pod": make.pod("p"), "NodeNameToMetaVictims": victims}
    body["Pod"]["spec"]["priority"] = 10
    assert (await running.call("preempt", body))[1] == {"NodeNameToMetaVictims": victims}


@pytest.mark.parametrize(
    ("verb", "body", "status"),
    [
        pytest.param("filter", b"{", 200, id="filter: broken body"),
        pytest.param("bind", b"{", 200, id="bind: broken body"),
        pytest.param("bind", b" " * 70_000, 200, id="bind: larger than 64 KiB"),
        pytest.param("filter", b" " * (4 << 20) + b" ", 413, id="filter: larger than 4 MiB"),
    ],
)
async def test_bad_calls_get_a_clear_answer(running, verb, body, status):
    got, answer = await running.call(verb, body)
    assert got == status
    if got == 200:
        assert verb in answer["Error"]


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        pytest.param("after", "", id="answer lost after the write"),
        pytest.param("before", "binding failed", id="connection lost before the write"),
        pytest.param("refused", "binding was refused: 403", id="refused"),
    ],
)
async def test_faults_of_the_api_server_during_bind(running, make, fault, error):
    job = make.pod("job", band="koord-batch", requests=BATCH_10)
    running.server.put("pods", job)
    running.server.fault = fault
    answer = await running.bind("job", "n2")
    assert answer.startswith(error) if error else answer == ""
    running.server.fault = None
    assert await running.bind("job", "n2") == ""
    assert running.server.bindings == [("default/job", "n2")]


async def test_a_switch_in_the_cluster_takes_effect_at_once(running, make):
    job = make.pod("job", band="koord-batch", requests=BATCH_10)
    running.server.put("configmaps", _config_map("koord-switches", {"extender": "observe"}))
    await running.until(lambda: _mode(running) == 2)
    assert (await running.filter(job, "n1"))["NodeNames"] == ["n1"]
    running.server.delete("configmaps", f"{names.NAMESPACE}/koord-switches")
    await running.until(lambda: not len(running.app.feeds.switches))
    assert (await running.filter(job, "n1"))["NodeNames"] == []


def _mode(running):
    return 2 if len(running.app.feeds.switches) else 0


async def test_an_unreadable_strategy_leaves_the_last_one_in_force(running, make):
    for text in ("{", "[]", '{"nodeConfigs": 7}'):
        data = {"colocation-config": text}
        running.server.put("configmaps", _config_map("slo-controller-config", data))
    key = f"{names.NAMESPACE}/slo-controller-config"
    await running.until(
        lambda: running.app.feeds.configuration.get(key).data["colocation-config"].endswith("7}")
    )
    job = make.pod("job", band="koord-batch", requests=BATCH_10)
    assert (await running.filter(job, "n1", "n2"))["NodeNames"] == ["n2"]


def _arguments(cpu):
    entry = {"name": "LoadAwareScheduling", "args": {"usageThresholds": {"cpu": cpu}}}
    document = {"kind": "KubeSchedulerConfiguration", "profiles": [{"pluginConfig": [entry]}]}
    data = {"koord-scheduler-config": json.dumps(document)}
    return _config_map("koord-scheduler-config", data)


async def test_arguments_take_effect_live_and_bad_ones_change_nothing(running, make):
    web = make.pod("web", requests={"cpu": "1"})
    assert (await running.filter(web, "n1", "n2"))["NodeNames"] == ["n1", "n2"]

    async def changed(count):
        name = "koord_extender_arguments_changes_total"
        while running.app.registry.value(name) != count:
            await running.time.advance(0.02)
            await asyncio.sleep(0)

    async with asyncio.timeout(patience.SECONDS):
        running.server.put("configmaps", _arguments(5))
        await changed(1)
        assert (await running.filter(web, "n1", "n2"))["NodeNames"] == []

        running.server.put("configmaps", _arguments(500))
        await running.until(lambda: "arguments" in running.app.health.warnings())
        assert running.app.health.ready
        assert (await running.filter(web, "n1", "n2"))["NodeNames"] == []
        assert running.app.registry.value("koord_extender_arguments_refused") == 1
        await running.until(lambda: any(_refused(event) for event in running.server.events))

        running.server.delete("configmaps", f"{names.NAMESPACE}/koord-scheduler-config")
        await changed(2)
    assert (await running.filter(web, "n1", "n2"))["NodeNames"] == ["n1", "n2"]
    assert running.app.health.warnings() == {}


def _refused(event):
    return (
        event["reason"] == "SchedulerConfigRefused"
        and event["regarding"]["name"] == "koord-scheduler-config"
        and "usageThresholds.cpu: is 500, must be at most 100" in event["note"]
    )


async def test_debug_page_says_what_it_needs(running):
    assert (await running.page("/debug/explain"))[0] == 400
    assert (await running.page("/debug/explain?pod=default/none"))[0] == 404
    status, text = await running.page("/metrics")
    assert status == 200
    assert "koord_extender_verb_seconds" in text


async def test_not_ready_is_an_error_and_not_a_guess(api_server, make):
    async with aiohttp.ClientSession() as session, api_server.serving() as access:
        api_server.fault = "read"
        nowhere = type(access)(server="http://127.0.0.1:1")
        async with app.running(_settings(), access=nowhere, clock=clock.ManualClock()) as made:
            extender = Running(made, session, api_server)
            answer = await extender.filter(make.pod("p"), "n1")
            assert answer["Error"].startswith("extender is not ready: ")
            assert (await extender.bind("p", "n1")).startswith("extender is not ready: ")
            assert (await extender.page("/readyz"))[0] == 503


async def test_the_picture_of_a_node_is_shown_beside_one_built_anew(running):
    status, text = await running.page("/debug/picture?node=n1")
    shown = json.loads(text)
    assert status == 200
    assert shown["agrees"]
    assert shown["nominated"] == []
    (pod,) = shown["pods"]
    assert (pod["pod"], pod["promised"]) == ("default/online-n1", False)
    assert shown["figures"]["requested"]["cpu"] == 100_000


async def test_a_picture_that_drifted_says_so(running):
    running.app.books.cluster._table.columns["requested"][0, 0] += 5
    shown = [json.loads((await running.page(f"/debug/picture?node={n}"))[1]) for n in ("n1", "n2")]
    assert sorted(node["agrees"] for node in shown) == [False, True]
    (drifted,) = (node for node in shown if not node["agrees"])
    difference = drifted["figures"]["requested"]["cpu"] - drifted["builtAnew"]["requested"]["cpu"]
    assert difference == 5
    running.app.books.cluster._table.columns["requested"][0, 0] -= 5


@pytest.mark.parametrize(
    ("query", "status", "words"),
    [
        pytest.param("", 400, "name the node", id="no node"),
        pytest.param("?node=nowhere", 404, "not known", id="unknown node"),
    ],
)
async def test_pictures_that_cannot_be_shown(running, query, status, words):
    answer, text = await running.page(f"/debug/picture{query}")
    assert answer == status
    assert words in json.loads(text)["error"]
