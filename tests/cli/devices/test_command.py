"""`koord status --devices` from its arguments to its output, on an API server."""

import asyncio
import json
import time

import pytest

from api import names, resources
from api.kubernetes import crds
from cli import main
from kube.client import access, client
from process.runtime.clock import ManualClock
from simulator.apiserver import apiserver
from simulator.processes import credentials
from tests.cli.devices.test_table import a_claim, a_device, a_pod, a_slice, gpu


@pytest.fixture
async def served(tmp_path):
    """An API server, an administrator, and words that reach it."""
    clock = ManualClock(float(int(time.time())))
    async with apiserver.running(clock=clock) as plane:
        file = tmp_path / "kubeconfig"
        file.write_text(json.dumps(credentials.kubeconfig(plane.url, plane.ca, plane.token)))
        who = access.Access(plane.url, plane.ca, access.StaticToken(plane.token))
        async with client.Client(who, clock=clock, user_agent="admin") as admin:
            await admin.create(resources.NODES, {"metadata": {"name": "n1"}})
            yield admin, ["status", "--devices", f"--kubeconfig={file}"]


async def defined(admin):
    for definition in crds.definitions():
        if definition["spec"]["names"]["kind"] == "Device":
            await admin.create(resources.CRDS, definition)


async def test_a_cluster_without_devices_says_so(served, capsys):
    _, words = served
    assert await asyncio.to_thread(main.main, words) == 0
    told = capsys.readouterr().err
    assert "no node has a Device object" in told
    assert "note: devices.scheduling.koordinator.sh is not installed" in told


async def test_devices_claims_and_problems_reach_the_terminal(served, capsys):
    admin, words = served
    await defined(admin)
    body = a_device("n1", gpu(0, health=False), gpu(1))
    kind = resources.DEVICES
    await admin.create(kind, {"apiVersion": kind.api_version, "kind": kind.kind, **body})
    await admin.create(resources.PODS, a_pod("holder"), "default")
    await admin.create(resources.RESOURCE_SLICES, a_slice("GPU-1"))
    claim = a_claim()
    exactly = {"name": "r", "exactly": {"deviceClassName": "any"}}
    claim["spec"] = {"devices": {"requests": [exactly]}}
    await admin.create(resources.RESOURCE_CLAIMS, claim, "default")
    await admin.patch(
        resources.RESOURCE_CLAIMS,
        "c",
        {"status": claim["status"]},
        namespace="default",
        subresource="status",
    )
    assert await asyncio.to_thread(main.main, words) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines[1] == "n1 gpu 0 A100 unhealthy 100% 40Gi 50% 20Gi 0% 0 default/holder 50%"
    assert lines[2] == "n1 gpu 1 A100 healthy 100% 40Gi - 0% 0 ResourceClaim default/c"
    assert lines[3] == "problem: pods default/holder hold gpu 0 of node n1, which is unhealthy"
    assert await asyncio.to_thread(main.main, [*words, "-o", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [item["resourceClaims"] for item in told["items"]] == [[], ["default/c"]]
    assert told["items"][0]["holders"][0]["resources"][names.GPU_CORE] == "50"
    assert (told["problems"][0]["reason"], told["notes"]) == ("UnhealthyInUse", [])
