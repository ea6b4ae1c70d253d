"""`koord status --reservations` and `koord explain reservation` on an API server."""

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
from tests.cli.reservations import test_reservations as objects


@pytest.fixture
async def served(tmp_path):
    """An API server, an administrator, and a function that runs the command."""
    clock = ManualClock(float(int(time.time())))
    async with apiserver.running(clock=clock) as plane:
        file = tmp_path / "kubeconfig"
        file.write_text(json.dumps(credentials.kubeconfig(plane.url, plane.ca, plane.token)))
        who = access.Access(plane.url, plane.ca, access.StaticToken(plane.token))
        async with client.Client(who, clock=clock, user_agent="admin") as admin:

            async def run(*words):
                return await asyncio.to_thread(main.main, [*words, f"--kubeconfig={file}"])

            yield admin, run


async def test_a_cluster_without_them_says_so(served, capsys):
    _, run = served
    assert await run("status", "--reservations") == 0
    told = capsys.readouterr().err
    assert "there is no Reservation" in told
    assert "note: reservations.scheduling.koordinator.sh could not be read: not installed" in told
    assert await run("explain", "reservation", "r") == 1
    assert "There is no Reservation r" in capsys.readouterr().out


async def test_what_waits_and_who_uses_it_reach_the_terminal(served, capsys):
    admin, run = served
    for definition in crds.definitions():
        if definition["spec"]["names"]["kind"] == "Reservation":
            await admin.create(resources.CRDS, definition)
    await admin.create(resources.NODES, {"metadata": {"name": "n1"}})
    uids = {}
    held = objects.a_reservation(status={"allocated": {"cpu": "2"}})
    for body in (held, objects.pending(name="late")):
        name = body["metadata"]["name"]
        made = await admin.create(resources.RESERVATIONS, body)
        uids[name] = made["metadata"]["uid"]
        status = {"status": body["status"]}
        await admin.patch(resources.RESERVATIONS, name, status, subresource="status")
    owner, stand_in = objects.an_owner("a"), objects.a_stand_in("late")
    notes = owner["metadata"]["annotations"]
    notes[names.ANNOTATION_RESERVATION_ALLOCATED] = json.dumps({"name": "r", "uid": uids["r"]})
    stand_in["metadata"]["annotations"][names.ANNOTATION_STAND_IN_UID] = uids["late"]
    for pod in (owner, stand_in):
        await admin.create(resources.PODS, pod, "default")
    assert await run("status", "--reservations") == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines[1].startswith("late Pending - 6 - - 0 ")
    assert lines[2].startswith("r Available n1 6 2 4 1 ")
    assert lines[3].startswith("2 Reservations: 1 Pending, 1 Available. Reserved 6; owners use 2")
    assert await run("status", "--reservations", "-l", "absent") == 0
    assert "there is no Reservation with labels absent" in capsys.readouterr().err
    assert await run("status", "--reservations", "-l", "!absent", "-o", "wide") == 0
    head, _, row, *_ = capsys.readouterr().out.splitlines()
    assert "OWNER PODS" in head
    assert "default/a" in row
    assert await run("explain", "reservation", "late") == 0
    told = capsys.readouterr().out
    assert "Pod default/standing-late stands in for it at the scheduler." in told
    assert "0/3 nodes are available: 3 Insufficient cpu." in told
    assert await run("explain", "pod", "a") == 0
    assert "It uses Reservation r: it has 4 cores left." in capsys.readouterr().out
