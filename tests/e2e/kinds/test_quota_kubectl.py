"""What an unmodified kubectl lists of ElasticQuotas in three groups, and what `koord get` lists."""

import asyncio
import json

import pytest
import pytest_asyncio

from api import names, resources
from cli.commands import explain
from cli.explain import stories
from cli.install import apply
from cli.quota import cluster, table
from cli.snapshot import reader
from kube.client import access as accesses
from kube.client import client as clients
from process.runtime import clock as clocks
from tests import builders

PLAIN, QUOTA, SHORT = resources.QUOTA_RESOURCES
ALL = ",".join(one.review_name() for one in resources.QUOTA_RESOURCES)


@pytest.fixture
def plane(real_plane):
    return real_plane


@pytest_asyncio.fixture(loop_scope="session")
async def kube(plane):
    access = accesses.Access(plane.server, plane.ca, accesses.StaticToken(plane.token))
    clock = clocks.SystemClock()
    async with clients.Client(access, clock=clock, user_agent="quota-kubectl") as made:
        await apply.definitions(made, clock)
        yield made


@pytest_asyncio.fixture(loop_scope="session")
async def quotas(kube, here):
    """One quota of each group, of the namespace of this test."""
    made = []
    for resource in resources.QUOTA_RESOURCES:
        name = f"{here.namespace}-{resource.group.partition('.')[0]}"
        body = {
            "apiVersion": resource.api_version,
            "kind": "ElasticQuota",
            "metadata": {"name": name, "namespace": here.namespace},
            "spec": {"min": {"cpu": "2"}, "max": {"cpu": "4"}},
        }
        await kube.create(resource, body, here.namespace)
        made.append((resource, name))
    yield dict(made)
    for resource, name in made:
        await kube.delete(resource, name, here.namespace)


async def listed(kubectl, what):
    found = json.loads(await kubectl("get", what, "-A", "-o", "json"))
    return {(item["apiVersion"], item["metadata"]["name"]) for item in found["items"]}


async def until(read, holds, seconds=30.0):
    """Read again until something holds: discovery of new groups takes a moment."""
    for _ in range(int(seconds * 4)):
        found = await read()
        if holds(found):
            return found
        await asyncio.sleep(0.25)
    raise AssertionError(f"not in {seconds} s: {found}")


@pytest.mark.parametrize("word", ["elasticquota", "elasticquotas"])
async def test_plain_kubectl_lists_one_group_and_qualified_names_list_each(kubectl, quotas, word):
    one = (SHORT.api_version, quotas[SHORT])
    assert await until(lambda: listed(kubectl, word), lambda found: one in found)
    found = await listed(kubectl, word)
    assert {version for version, _ in found} == {SHORT.api_version}
    for resource, name in quotas.items():
        assert (resource.api_version, name) in await listed(kubectl, resource.review_name())
    together = await listed(kubectl, ALL)
    assert {(resource.api_version, name) for resource, name in quotas.items()} <= together


async def test_the_columns_of_kubectl_show_use_and_runtime(kubectl, quotas, kube, here):
    status = {"status": {"used": {"cpu": "3"}, "allocatedQuota": {"cpu": "4"}}}
    await here.api.patch(SHORT.path(here.namespace, quotas[SHORT]), status)
    text = await kubectl("get", SHORT.review_name(), "-n", here.namespace)
    head, row = text.splitlines()
    assert head.split()[:4] == ["NAME", "CPU", "CPU", "RUNTIME"]
    assert row.split()[:3] == [quotas[SHORT], "3", "4"]


async def test_koord_get_and_explain_know_all_three_groups(quotas, kube, here):
    pod = builders.a_pod(
        "p", here.namespace, cpu="1", labels={names.LABEL_QUOTA_NAME: quotas[PLAIN]}
    )
    await here.api.post(resources.PODS.path(here.namespace), pod)
    found = cluster.build(await reader.taken(kube, clocks.SystemClock()))
    rows = {row.name: row for row in table.rows(found)}
    assert {rows[name].group for name in quotas.values()} == {r.group for r in quotas}
    assert rows[quotas[PLAIN]].standing.waiting["cpu"] == 1000
    told = "\n".join(stories.lines(explain.quota(found, quotas[PLAIN])))
    assert f"{here.namespace}/p (priority 0)" in told
    assert not explain.quota(found, quotas[PLAIN] + "x").found
