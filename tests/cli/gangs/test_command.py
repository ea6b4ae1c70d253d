"""The commands about gangs, from their arguments to their answer."""

import asyncio
import json
import time

import pytest

from api import resources
from api.kubernetes import crds
from cli import main
from cli.snapshot import reader
from kube.client import access, client
from process.runtime.clock import ManualClock
from simulator.apiserver import apiserver
from simulator.processes import credentials
from tests import builders
from tests.cli.gangs import test_cluster as objects
from tests.cli.placement import clusters


@pytest.fixture
def run(tmp_path, capsys):
    """Runs a command on a snapshot of some objects."""

    def tried(*words, of=()):
        reader.save(tmp_path / "snapshot", clusters.snapshot(*of))
        code = main.main([*words, f"--snapshot={tmp_path / 'snapshot'}"])
        return code, capsys.readouterr()

    return tried


def test_all_gangs_in_lines_and_as_a_document(run):
    members = [objects.a_member("a"), objects.a_member("b")]
    code, told = run("status", "--gangs", of=members)
    assert code == 0
    assert told.out.splitlines()[-1] == "1 gang: 1 Waiting. 0 of 2 members are bound."
    code, told = run("status", "--gangs", "-o", "json", of=members)
    (item,) = json.loads(told.out)["items"]
    assert (code, item["name"], item["waitsFor"]) == (0, "g", objects.FIRST)


def test_namespace_and_labels_choose_gangs_and_wide_names_their_nodes(run):
    elsewhere = objects.a_member("c", gang="other")
    elsewhere["metadata"]["namespace"] = "team"
    every = [objects.a_member("a"), objects.a_member("b"), elsewhere]

    def named(*words):
        code, told = run("status", "--gangs", "-o", "name", *words, of=every)
        assert code == 0
        return told.out.split()

    assert named() == named("-A") == ["default/g", "team/other"]
    assert named("-n", "team") == ["team/other"]
    assert named("-l", "no=such") == []
    _, told = run("status", "--gangs", "-n", "team", of=every)
    assert told.out.splitlines()[-1].startswith("1 gang: ")
    _, told = run("status", "--gangs", "-l", "no=such", of=every)
    assert told.err == "there is no gang with labels no=such\n"
    _, told = run("status", "--gangs", "-o", "wide", of=every)
    assert "NODE NAMES" in told.out.splitlines()[0]


def test_a_cluster_without_gangs_says_so(run):
    code, told = run("status", "--gangs")
    assert (code, told.err) == (0, "there is no gang\n")


def test_a_snapshot_is_for_some_tables_only(run):
    code, told = run("status")
    assert (code, told.err) == (2, "koord status: --snapshot is for --reservations and --gangs\n")


def test_the_story_of_a_gang_of_a_snapshot(run):
    code, told = run("explain", "gang", "g", of=[objects.a_member("a")])
    assert (code, told.out.splitlines()[0]) == (0, "Gang default/g waits for 1 of 2 members.")
    code, told = run("explain", "gang", "team/x", of=[objects.a_member("a")])
    assert (code, told.out) == (1, "There is no gang team/x among 1.\n")


@pytest.fixture
async def served(tmp_path):
    """An API server, an administrator, and a function that runs the command."""
    clock = ManualClock(float(int(time.time())))
    async with apiserver.running(clock=clock) as plane:
        file = tmp_path / "kubeconfig"
        file.write_text(json.dumps(credentials.kubeconfig(plane.url, plane.ca, plane.token)))
        who = access.Access(plane.url, plane.ca, access.StaticToken(plane.token))
        async with client.Client(who, clock=clock, user_agent="admin") as admin:

            async def tried(*words):
                return await asyncio.to_thread(main.main, [*words, f"--kubeconfig={file}"])

            yield admin, tried


async def test_a_cluster_is_read_with_what_happened_to_the_gang(served, capsys):
    admin, tried = served
    for definition in crds.definitions():
        if definition["spec"]["names"]["kind"] == "PodGroup":
            await admin.create(resources.CRDS, definition)
    group = objects.a_pod_group(minimum=3)
    made = await admin.create(resources.POD_GROUPS, group, "default")
    await admin.create(resources.NODES, builders.a_node("n1", cpu="8"))
    for name in ("g0", "g1"):
        await admin.create(resources.PODS, objects.in_group(name), "default")
    event = {
        "metadata": {"name": "e", "namespace": "default"}, "type": "Warning",
        "reason": "GangBelowQuorum", "message": "gang default/g was complete",
        "involvedObject": {"kind": "PodGroup", "name": "g", "namespace": "default",
                           "uid": made["metadata"]["uid"]},
    }  # fmt: skip
    await admin.create(resources.CORE_EVENTS, event, "default")
    assert await tried("status", "--gangs") == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines[1].startswith("default/g Waiting 3 2 0 0 - ")
    assert lines[1].endswith(" waits for 1 of 3 members")
    assert await tried("explain", "gang", "g") == 0
    told = capsys.readouterr().out
    assert told.startswith("Gang default/g waits for 1 of 3 members.\n")
    assert "1 member of gang default/g does not exist; it is tried as a copy of" in told
    assert "Event GangBelowQuorum: gang default/g was complete." in told
    assert await tried("simulate", "gang", "g") == 0
    told = capsys.readouterr().out
    assert "Gang default/g does not fit: 2 of 3 members find a node on 1 node, 3 have to." in told
