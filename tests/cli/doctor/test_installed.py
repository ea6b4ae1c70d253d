"""`koord doctor installation`: the parts are ready, the webhook is called, the extender answers."""

import asyncio
import contextlib

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from api import names, resources
from api.kubernetes.webhooks import webhook_configuration
from cli import main
from cli.doctor import installed
from kube.client import access, client
from process.runtime.clock import ManualClock
from simulator.apiserver import apiserver
from tests.patience import until

NAMESPACE = names.NAMESPACE
WEBHOOKS = (resources.MUTATING_WEBHOOKS, resources.VALIDATING_WEBHOOKS)
OPTIONS = installed.Options(components=("manager",))


@pytest.fixture
async def kube():
    clock = ManualClock(1.8e9)
    async with apiserver.running(clock=clock) as plane:
        who = access.Access(plane.url, plane.ca, access.StaticToken(plane.token))
        async with client.Client(who, clock=clock, user_agent="test") as found:
            await found.create(resources.NAMESPACES, {"metadata": {"name": NAMESPACE}})
            for resource in WEBHOOKS:
                await found.create(resource, registration(resource, "observe"))
            yield found


def registration(resource, mode):
    told = webhook_configuration.Answering(mode=mode)
    marks = {names.ANNOTATION_ADMISSION: webhook_configuration.text(told)}
    return {"metadata": {"name": "koord-webhook", "annotations": marks}, "webhooks": []}


async def deploy(kube, component, *, ready=1, image="koord"):
    """A Deployment of one pod."""
    name, own = f"koord-{component}", {names.LABEL_COMPONENT: component}
    template = {
        "metadata": {"labels": own},
        "spec": {"containers": [{"name": component, "image": image}]},
    }
    spec = {"replicas": 1, "selector": {"matchLabels": own}, "template": template}
    body = {"metadata": {"name": name, "labels": {**names.INSTALLED, **own}}, "spec": spec}
    await kube.create(resources.DEPLOYMENTS, body, NAMESPACE)
    await stands(kube, component, ready)


async def stands(kube, component, ready):
    status = {"replicas": 1, "readyReplicas": ready, "updatedReplicas": 1}
    await kube.patch(
        resources.DEPLOYMENTS,
        f"koord-{component}",
        {"status": status},
        namespace=NAMESPACE,
        subresource="status",
    )


@contextlib.asynccontextmanager
async def extender(status):
    async def readyz(_request):
        return web.Response(status=status, text="not synced: pods")

    app = web.Application()
    app.router.add_get("/readyz", readyz)
    async with TestServer(app) as server:
        yield f"http://127.0.0.1:{server.port}"


def said(found):
    return {one.check: (str(one.severity), one.sentence) for one in found}


async def test_what_works_is_fine_and_an_observing_webhook_is_named(kube):
    await deploy(kube, "manager")
    async with extender(200) as url:
        options = installed.Options(components=("manager",), extenders=(url,))
        found = said(await installed.examine(kube, options))
    assert found["workload"] == ("ok", "every part that was installed is ready")
    assert found["webhook"][0] == "info"
    assert "set to observe" in found["webhook"][1]
    assert found["extender"] == ("ok", "the extender answers")


async def test_an_extender_in_place_is_not_asked(kube):
    found = said(await installed.examine(kube, OPTIONS))
    assert found["extender"] == ("info", "not asked: it is installed in place, or not at all")


async def test_what_is_missing_or_not_ready_is_an_error(kube):
    await deploy(kube, "manager", ready=0)
    options = installed.Options(components=("manager", "scheduler"))
    found = said(await installed.examine(kube, options))
    assert found["workload.not-ready"][0] == "error"
    assert "component=scheduler" in found["workload.missing"][1]
    assert found["extender.no-pod"][0] == "error"


async def test_an_extender_that_is_not_ready_says_why(kube):
    async with extender(503) as url:
        options = installed.Options(components=(), extenders=(url, "http://127.0.0.1:1"))
        found = await installed.examine(kube, options)
    texts = [one.sentence for one in found if one.check == "extender.silent"]
    assert texts[0] == f"{url} is not ready: not synced: pods"
    assert "http://127.0.0.1:1 does not answer" in texts[1]


async def test_without_a_registration_the_webhook_is_an_error(kube):
    for resource in WEBHOOKS:
        await kube.delete(resource, "koord-webhook")
    found = said(await installed.examine(kube, OPTIONS))
    assert found["webhook"][0] == "error"


async def test_the_pods_of_the_scheduler_are_asked_at_their_addresses(kube):
    labels = {**names.INSTALLED, names.LABEL_COMPONENT: "scheduler"}
    ports = [{"name": "metrics", "containerPort": 1}]
    for number, address in enumerate(("127.0.0.1", "::1")):
        spec = {"containers": [{"name": "extender", "image": "koord", "ports": ports}]}
        name = f"koord-scheduler-{number}"
        await kube.create(
            resources.PODS, {"metadata": {"name": name, "labels": labels}, "spec": spec}, NAMESPACE
        )
        status = {"phase": "Running", "podIP": address}
        await kube.patch(
            resources.PODS, name, {"status": status}, namespace=NAMESPACE, subresource="status"
        )
    found = await installed.examine(kube, installed.Options(components=("scheduler",)))
    texts = sorted(one.sentence for one in found if one.check == "extender.silent")
    assert [text.partition(" ")[0] for text in texts] == ["http://127.0.0.1:1", "http://[::1]:1"]


async def test_it_waits_for_what_is_not_ready_yet(kube):
    await deploy(kube, "manager", ready=0)
    clock = ManualClock()

    async def mends():
        await until(lambda: clock.sleepers, lambda: asyncio.sleep(0))
        await stands(kube, "manager", 1)
        await clock.advance(installed.PAUSE_SECONDS)

    found, _ = await asyncio.gather(installed.settled(kube, clock, OPTIONS, 60.0), mends())
    assert said(found)["workload"][0] == "ok"


async def test_it_does_not_wait_for_ever(kube):
    await deploy(kube, "manager", ready=0)
    found = await installed.settled(kube, ManualClock(), OPTIONS, installed.PAUSE_SECONDS / 2)
    assert said(found)["workload.not-ready"][0] == "error"


@pytest.mark.parametrize(
    ("word", "told"),
    [("--components=managr", "there is no managr; choose of webhook"), ("--wait=soon", "soon")],
)
def test_bad_arguments_name_what_is_meant(word, told, capsys):
    with pytest.raises(SystemExit) as ended:
        main.main(["doctor", "installation", word])
    assert ended.value.code == 2
    assert told in capsys.readouterr().err
