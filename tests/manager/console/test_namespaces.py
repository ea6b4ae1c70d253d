"""Every page, seen by a user of one namespace: nothing of the other team is in any answer."""

import json

import pytest

from api import names, resources
from manager.console import needs
from tests.manager.console import conftest

TEAMS = ("team-a", "team-b")
WORDS = {"team-a": "alpha", "team-b": "omega"}
"""Part of the name of everything in a namespace."""
PATHS = tuple(f"/api/{page}" for page in needs.PAGES)


def quota(name, parent=""):
    spec = {"min": {"cpu": "4", "memory": "4Gi"}, "max": {"cpu": "8", "memory": "8Gi"}}
    labels = {names.LABEL_QUOTA_PARENT: parent} if parent else {}
    return {"metadata": {"name": name, "labels": labels}, "spec": spec}


def holding(pod, minor):
    amounts = {names.GPU_CORE: "100", names.GPU_MEMORY_RATIO: "100"}
    asked = pod["spec"]["containers"][0]["resources"]
    for part in ("requests", "limits"):
        asked[part] = {**asked[part], **amounts}
    held = json.dumps({"gpu": [{"minor": minor, "resources": amounts}]})
    pod["metadata"]["annotations"] = {names.ANNOTATION_DEVICE_ALLOCATED: held}
    return pod


async def create(world, resource, body, namespace=""):
    head = {"apiVersion": resource.api_version, "kind": resource.kind}
    await world.admin.create(resource, {**head, **body}, namespace)


@pytest.fixture
async def filled(world, opened):
    """A console in front of two teams that share a node."""
    await world.node("n1")
    await world.configure(colocation_config={"enable": True})
    whole = {names.GPU_CORE: "100", names.GPU_MEMORY_RATIO: "100", names.GPU_MEMORY: "80Gi"}
    listed = [{"type": "gpu", "minor": n, "id": f"g{n}", "health": n == 0, "resources": whole}
              for n in range(2)]  # fmt: skip
    device = {"metadata": {"name": "n1"}, "spec": {"devices": listed}}
    await create(world, resources.DEVICES, device)
    for number, team in enumerate(TEAMS):
        word = WORDS[team]
        pod = holding(conftest.pod(f"{word}-gpu", node="n1"), number)
        await create(world, resources.PODS, pod, team)
        for member in range(2):
            pod = conftest.pod(f"{word}-{member}", node="" if member else "n1")
            pod["metadata"]["labels"]["pod-group.scheduling.sigs.k8s.io"] = f"{word}-gang"
            await create(world, resources.PODS, pod, team)
        group = {"metadata": {"name": f"{word}-gang"}, "spec": {"minMember": 2}}
        await create(world, resources.POD_GROUPS, group, team)
    await create(world, resources.ELASTIC_QUOTAS, quota("omega-quota"), "team-b")
    await create(world, resources.ELASTIC_QUOTAS, quota("alpha-quota", "omega-quota"), "team-a")
    async with opened() as console:
        await world.report("n1", "3")
        await world.quiet()
        for _ in range(3):
            await world.clock.advance(1.0)
            await world.quiet()
        yield console


def grant_team(rights):
    """Let the user of team-a list everything in its namespace."""
    kinds = (resources.PODS, resources.POD_GROUPS, *resources.QUOTA_RESOURCES)
    for kind in kinds:
        rights.grant("team-a", kind, "team-a")


def grant_cluster(rights):
    """Let it list the kinds of the cluster as well, but pods nowhere else."""
    for kind in (resources.NODES, resources.NODE_METRICS, resources.DEVICES,
                 resources.RESERVATIONS, resources.POD_MIGRATION_JOBS,
                 resources.CLUSTER_NETWORK_TOPOLOGIES,
                 resources.NODE_RESOURCE_TOPOLOGIES):  # fmt: skip
        rights.grant("team-a", kind)


async def test_every_page_hides_the_other_team(filled) -> None:
    grant_team(filled.rights)
    grant_cluster(filled.rights)
    seen = {}
    for path in (*PATHS, "/api/session", "/api/nodes/n1"):
        status, body = await filled.get(path, conftest.TEAM)
        assert status in (200, 403), body
        assert "omega" not in str(body), path
        assert "team-b" not in str(body), path
        seen[path] = body
    assert "pods in all namespaces" in seen["/api/scorecard"]["error"]
    assert [one["name"] for one in seen["/api/pending"]["items"]] == ["alpha-1"]
    assert [one["name"] for one in seen["/api/gangs"]["items"]] == ["team-a/alpha-gang"]
    (device,) = seen["/api/devices"]["items"]
    assert [[one["pod"] for one in each["holders"]] for each in device["devices"]] == [
        ["team-a/alpha-gpu"], []
    ]  # fmt: skip
    assert (device["devices"][1]["hidden"], device["problems"], device["faults"]) == (1, [], 1)


async def test_quotas_of_other_namespaces_are_not_even_named(filled) -> None:
    grant_team(filled.rights)
    shown = await filled.shown("/api/quotas", conftest.TEAM)
    assert [(one["name"], one["parent"]) for one in shown["items"]] == [("alpha-quota", "")]
    everything = await filled.shown("/api/quotas")
    found = {one["name"]: one["parent"] for one in everything["items"]}
    assert (found["omega-quota"], found["alpha-quota"]) == ("", "omega-quota")


@pytest.mark.parametrize("path", ["/api/pending", "/api/gangs"])
async def test_a_namespace_that_may_not_be_listed_is_refused_by_name(filled, path) -> None:
    grant_team(filled.rights)
    status, body = await filled.get(f"{path}?namespace=team-b", conftest.TEAM)
    assert (status, body["error"]) == (403, "team-a may not list pods in namespace team-b")
    shown = await filled.shown(f"{path}?namespace=team-a", conftest.TEAM)
    assert shown["total"] == 1


async def test_who_may_list_nothing_is_shown_nothing(filled) -> None:
    for path in PATHS:
        status, body = await filled.get(path, conftest.ANYONE)
        assert status == 403 or (status, body["items"]) == (200, []), path
        assert not any(word in str(body) for word in ("alpha", "omega", "n1", "team-")), path


async def test_pod_groups_alone_do_not_show_pods_nor_pods_pod_groups(filled) -> None:
    filled.rights.grant("team-a", resources.POD_GROUPS, "team-a")
    assert (await filled.shown("/api/gangs", conftest.TEAM))["items"] == []
    filled.rights.grant("anyone", resources.PODS, "team-a")
    (row,) = (await filled.shown("/api/gangs", conftest.ANYONE))["items"]
    assert (row["phase"], row["minimum"], row["members"]) == ("", 0, 2)


async def test_the_administrator_sees_all(filled) -> None:
    seen = {path: await filled.shown(path) for path in PATHS}
    assert {one["namespace"] for one in seen["/api/pending"]["items"]} == set(TEAMS)
    assert seen["/api/gangs"]["states"] == {"BelowMinimum": 2}
    (row, _) = seen["/api/gangs"]["items"]
    assert (row["minimum"], row["placed"], row["members"]) == (2, 1, 2)
    assert seen["/api/devices"]["items"][0]["problems"]
    assert seen["/api/devices"]["withProblems"] == 1
    card = seen["/api/scorecard"]
    assert (card["nodes"], card["reported"]) == (1, 1)
    assert card["whole"]["cpu"] == 3000


@pytest.mark.parametrize(
    ("query", "why"),
    [
        pytest.param("offset=-1", "offset must be a whole number", id="negative"),
        pytest.param("limit=201", "limit must be a whole number up to 200", id="too-many"),
        pytest.param("offset=1e9", "offset", id="no-number"),
        pytest.param("q=" + "x" * 254, "q has more than 253 characters", id="too-long"),
    ],
)
async def test_questions_that_make_no_sense_are_refused(filled, query, why) -> None:
    status, body = await filled.get(f"/api/pending?{query}")
    assert status == 400
    assert why in body["error"]


async def test_of_many_namespaces_one_has_to_be_named(world, opened, rights) -> None:
    for number in range(52):
        namespace = f"many-{number:02}"
        await world.admin.create(resources.NAMESPACES, {"metadata": {"name": namespace}})
        await create(world, resources.PODS, conftest.pod(f"p{number}"), namespace)
        rights.grant("team-a", resources.PODS, namespace)
    async with opened() as console:
        shown = await console.shown("/api/pending?limit=200", conftest.TEAM)
        assert (shown["total"], shown["partial"]) == (50, True)
        one = await console.shown("/api/pending?namespace=many-51", conftest.TEAM)
        assert [pod["name"] for pod in one["items"]] == ["p51"]
