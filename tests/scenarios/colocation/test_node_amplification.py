"""A node that offers more than its kubelet reports, whoever writes its status."""

import json

import pytest_asyncio

from api import names, resources
from cli.install import apply
from kube.client import access as accesses
from kube.client import client as clients
from process.runtime import clock as clocks
from tests.planes import raw
from webhook import app as webhook_app
from webhook import settings as webhook_settings

PATIENCE = 60.0
SERVED = {"host": "127.0.0.1", "port": 0, "linger_seconds": 0.0, "drain_seconds": 0.0}
OFF = ("PodMutatingWebhook", "PodValidatingWebhook", "ConfigMapValidatingWebhook")
HOOKS = (resources.MUTATING_WEBHOOKS, resources.VALIDATING_WEBHOOKS)


@pytest_asyncio.fixture(loop_scope="session")
async def amplifying(plane, here, tmp_path):
    """A node with ratios, and the webhook that follows them."""
    hook = here.name("amplifier")
    chosen = webhook_settings.Settings.model_validate(
        {
            "namespace": here.namespace,
            "server": {**SERVED, "announce_seconds": 0.0},
            "health": SERVED,
            "certificates": {"names": ("127.0.0.1",), "folder": tmp_path / "served"},
            "registration": {"name": hook, "url": "self"},
            "feature_gates": {"NodeMutatingWebhook": True, **dict.fromkeys(OFF, False)},
        }
    )
    access = accesses.Access(plane.server, plane.ca, accesses.StaticToken(plane.token))
    clock = clocks.SystemClock()
    async with clients.Client(access, clock=clock, user_agent="admin") as kube:
        await apply.definitions(kube, clock)
    ratios = {names.ANNOTATION_AMPLIFICATION: '{"cpu":1.50}'}
    name = await here.node("a", annotations=ratios, cpu="8", memory="16Gi")
    try:
        async with webhook_app.running(chosen, access=access, clock=clock):
            yield resources.NODES.path(name=name)
    finally:
        for resource in HOOKS:
            await here.api.call("DELETE", resource.path(name=hook))


async def test_what_a_kubelet_reports_is_multiplied_once(here, amplifying):
    async def reported():
        # The API server asks from a moment after the registration on.
        for cpu in ("8", "10"):
            node = await here.api.patch(
                f"{amplifying}/status", {"status": {"allocatable": {"cpu": cpu}}}
            )
        return node if node["status"]["allocatable"]["cpu"] == "15" else None

    node = await raw.eventually(reported, PATIENCE)
    assert _true(node) == {"cpu": "10", "memory": "16Gi"}
    assert node["status"]["capacity"]["cpu"] == "8"
    # Another writer of the status, such as the manager, changes nothing about it.
    lent = {"capacity": {names.BATCH_CPU: "1000"}, "allocatable": {names.BATCH_CPU: "1000"}}
    node = await here.api.patch(f"{amplifying}/status", {"status": lent})
    assert (node["status"]["allocatable"]["cpu"], _true(node)["cpu"]) == ("15", "10")
    # Without ratios nothing is remembered, and the next report is taken as it is.
    gone = {"metadata": {"annotations": {names.ANNOTATION_AMPLIFICATION: None}}}
    await here.api.patch(amplifying, gone)
    node = await here.api.patch(f"{amplifying}/status", {"status": {"allocatable": {"cpu": "10"}}})
    assert node["status"]["allocatable"]["cpu"] == "10"
    assert names.ANNOTATION_RAW_ALLOCATABLE not in node["metadata"].get("annotations", {})


async def test_ratios_that_nobody_can_read_keep_no_kubelet_from_reporting(here, amplifying):
    bad = {"metadata": {"annotations": {names.ANNOTATION_AMPLIFICATION: "much"}}}

    async def refused():
        query = {"dryRun": "All"}
        answer = await here.api.call(
            "PATCH", f"{amplifying}/status", bad, kind=raw.MERGE_PATCH, query=query
        )
        return answer if answer.status >= 400 else None

    refusal = await raw.eventually(refused, PATIENCE)
    assert names.ANNOTATION_AMPLIFICATION in refusal.message
    await here.api.patch(amplifying, bad)
    node = await here.api.patch(f"{amplifying}/status", {"status": {"allocatable": {"cpu": "7"}}})
    assert node["status"]["allocatable"]["cpu"] == "7"


def _true(node):
    return json.loads(node["metadata"]["annotations"][names.ANNOTATION_RAW_ALLOCATABLE])
