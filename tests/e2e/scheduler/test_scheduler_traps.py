"""What a scheduler configuration can get wrong without saying so, shown on the real scheduler."""

import asyncio
import pathlib
import ssl

import pytest
from aiohttp import web

from simulator.processes import children
from tests.planes.admission import admission
from tests.planes.scheduler import scripted

BATCH = "kubernetes.io/batch-cpu"
GPU = "example.koord.sh/gpu"
DECIDING, BINDING = 0, 1


@pytest.fixture
def plane(real_plane):
    return real_plane


def change(entry, **changes):
    def adjust(config):
        config["extenders"][entry] |= changes

    return adjust


def both(**changes):
    def adjust(config):
        for entry in config["extenders"]:
            entry |= changes

    return adjust


async def test_whole_nodes_are_sent_to_who_keeps_no_copy(here, extender):
    await here.plane.start_scheduler(extender.url, adjust=both(nodeCacheCapable=False))
    names = {await here.node("a"), await here.node("b")}

    async def whole(body):
        return {"Nodes": body["Nodes"], "FailedNodes": {}}

    async def points(body):
        return [{"Host": n["metadata"]["name"], "Score": 1} for n in body["Nodes"]["items"]]

    extender.filter, extender.prioritize = whole, points
    for name in ("web", "next"):
        await here.pod(name)
        await here.bound(name)
    for verb in ("filter", "prioritize"):
        body = extender.of(verb, "next")[0].body
        assert set(body) == {"Pod", "Nodes", "NodeNames"}
        assert body["NodeNames"] is None
        assert {node["metadata"]["name"] for node in body["Nodes"]["items"]} == names
        assert body["Nodes"]["items"][0]["status"]["allocatable"]["cpu"] == "8"


async def test_whole_victims_are_sent_to_who_keeps_no_copy(here, extender):
    await here.plane.start_scheduler(extender.url, adjust=both(nodeCacheCapable=False))
    node = await here.node("a", cpu="2")

    async def whole(body):
        return {"Nodes": body["Nodes"]}

    async def as_asked(body):
        given = body["NodeNameToVictims"]
        uids = [{"UID": pod["metadata"]["uid"]} for pod in given[node]["Pods"]]
        # Even then the answer has to name them only.
        return {"NodeNameToMetaVictims": {node: {"Pods": uids, "NumPDBViolations": 0}}}

    extender.filter, extender.preempt = whole, as_asked
    async with here.priority(1000) as high:
        low = await here.pod("low", requests={"cpu": "2"})
        await here.bound("low")
        await here.pod("high", requests={"cpu": "2"}, priorityClassName=high)
        (call, *_) = await extender.called("preempt", "high")
        assert call.body["NodeNameToMetaVictims"] is None
        (victim,) = call.body["NodeNameToVictims"][node]["Pods"]
        assert victim["metadata"]["uid"] == low["metadata"]["uid"]
        assert victim["spec"]["containers"]


@pytest.mark.parametrize("where", ["containers", "initContainers"])
async def test_only_pods_with_a_managed_resource_are_sent(here, extender, where):
    managed = change(DECIDING, managedResources=[{"name": GPU}])
    await here.plane.start_scheduler(extender.url, adjust=managed)
    await here.node("a", more={GPU: "4"})
    await here.pod("plain")
    await here.bound("plain")
    assert [call.verb for call in extender.calls] == ["bind"]
    amounts = {"requests": {GPU: "1"}, "limits": {GPU: "1"}}
    body = here.pod_body("wants")
    container = {**body["spec"]["containers"][0], "name": "wants", "resources": amounts}
    body["spec"].setdefault(where, []).append(container)
    await here.api.post(here.path("pods"), body)
    await here.bound("wants")
    assert extender.of("filter", "wants")


async def test_an_ignored_resource_is_nowhere_counted(here, extender):
    managed = [{"name": GPU, "ignoredByScheduler": True}]
    await here.plane.start_scheduler(
        extender.url, adjust=change(DECIDING, managedResources=managed)
    )
    await here.node("a")
    await here.pod("wants", requests={GPU: "1"})
    await here.bound("wants")


async def test_a_bind_that_may_be_ignored_is_replaced_without_a_word(here, extender):
    await here.plane.start_scheduler(extender.url, adjust=change(BINDING, ignorable=True))
    await here.node("a")

    async def refuse(body):
        return {"Error": "the device is gone"}

    extender.bind = refuse
    await here.pod("web")
    pod = await here.bound("web")
    assert extender.of("bind", "web")
    assert not pod["metadata"].get("annotations")


async def test_a_filter_that_may_be_ignored_decides_only_while_it_works(here, extender):
    await here.plane.start_scheduler(extender.url, adjust=change(DECIDING, ignorable=True))
    await here.node("a")

    async def broken(body):
        return web.Response(status=500)

    extender.filter = broken
    await here.pod("web")
    await here.bound("web")


async def test_tls_without_an_authority_trusts_everybody(here, tmp_path):
    certificate, key = admission.self_signed()
    async with scripted.listening(here.api, context=served(tmp_path, certificate, key)) as extender:
        config = both(enableHTTPS=True, tlsConfig={"insecure": False})
        await here.plane.start_scheduler(extender.url, adjust=config)
        try:
            await here.node("a")
            await here.pod("web")
            await here.bound("web")
            assert extender.of("bind", "web")
        finally:
            await here.plane.stop_scheduler()


async def test_tls_with_another_authority_trusts_nobody(here, tmp_path):
    certificate, key = admission.self_signed()
    other, _ = await asyncio.to_thread(admission.self_signed)
    (tmp_path / "ca.pem").write_bytes(other)
    async with scripted.listening(here.api, context=served(tmp_path, certificate, key)) as extender:
        tls = {"caFile": str(tmp_path / "ca.pem")}
        await here.plane.start_scheduler(extender.url, adjust=both(enableHTTPS=True, tlsConfig=tls))
        try:
            await here.node("a")
            await here.pod("web")
            await here.refused("web", reason="SchedulerError")
            assert not extender.calls
        finally:
            await here.plane.stop_scheduler()


def served(folder: pathlib.Path, certificate, key):
    pair = folder / "pair.pem"
    pair.write_bytes(certificate + key)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(pair)
    return context


@pytest.mark.parametrize(
    ("adjust", "saying"),
    [
        pytest.param(
            change(DECIDING, bindVerb="bind"), "only one extender can implement bind", id="binders"
        ),
        pytest.param(
            change(DECIDING, managedResources=[{"name": "cpu"}]),
            "invalid extended resource name",
            id="cpu is no extended resource",
        ),
        pytest.param(
            change(DECIDING, managedResources=[{"name": BATCH}]),
            "invalid extended resource name",
            id="batch-cpu is no extended resource",
        ),
        pytest.param(
            both(managedResources=[{"name": GPU}]),
            "duplicate extender managed resource name",
            id="two entries cannot share a resource",
        ),
        pytest.param(change(DECIDING, weight=0), "must have a positive weight", id="weight"),
    ],
)
async def test_a_configuration_that_cannot_work_is_refused(here, adjust, saying):
    with pytest.raises(children.ChildError, match=saying):
        await here.plane.start_scheduler("http://127.0.0.1:9", adjust=adjust)
    await here.plane.stop_scheduler()
