"""The NodeMetric of the real node: pods, containers and classes against the groups themselves."""

import pytest

from api import names
from api.wire import quantity
from tests.planes.node import node_cluster, node_groups, node_reports, node_standing

MEBIBYTE = 1 << 20


def pods_of(status):
    """The reported pods of the tests by name."""
    return {
        one["name"]: one
        for one in status.get("podsMetric") or ()
        if one["namespace"] == node_cluster.NAMESPACE
    }


def containers_of(status, pod):
    """The reported containers of a pod by name."""
    for one in status.get("podMetrics") or ():
        if one["podRef"] == {"namespace": node_cluster.NAMESPACE, "name": pod}:
            return {each["name"]: each for each in one["containers"]}
    return {}


def settled(status):
    """Whether every standing pod is in a report, with its containers."""
    return (
        set(node_standing.NAMES) <= set(pods_of(status)) and len(containers_of(status, "lent")) == 2
    )


def memory_of(folder):
    """What counts as memory in use: anonymous pages, and memory volumes, which never leave."""
    found = node_groups.fields(folder, "memory.stat")
    kinds = ("inactive_anon", "active_anon", "unevictable")
    return sum(found[f"total_{kind}"] for kind in kinds)


async def test_classes_and_containers_agree_with_the_groups(cluster, standing, enforcing):
    await cluster.metric(settled)
    folders = {
        name: cluster.node.group("cpuacct", standing.group(name)) for name in ("online", "bound")
    }
    status, rates = await node_reports.beside(cluster, folders)
    for name, rate in rates.items():
        told = quantity.milli(pods_of(status)[name]["podUsage"]["resources"]["cpu"]) / 1000
        print(f"{name}: {told:.3f} cores reported, {rate:.3f} counted by its group")
        assert told == pytest.approx(rate, rel=0.5, abs=0.02)
    inner = containers_of(status, "lent")
    for name, entry in inner.items():
        told = quantity.whole(entry["usage"]["memory"])
        held = memory_of(cluster.node.group("memory", standing.group("lent", name)))
        print(f"lent/{name}: {told} bytes reported, {held} counted by its group")
        assert told == pytest.approx(held, rel=0.2, abs=MEBIBYTE)
    assert quantity.whole(inner["main"]["usage"]["memory"]) >= node_standing.HELD * MEBIBYTE


async def test_the_classes_add_up(cluster, standing, enforcing):
    status = (await cluster.metric(settled))["status"]
    qualities = {name: one["qos"] for name, one in pods_of(status).items()}
    assert {name: qualities[name] for name in node_standing.NAMES} == {
        "online": "LS",
        "lent": "BE",
        "bound": "LSR",
    }
    assert pods_of(status)["lent"]["priority"] == "koord-batch"
    batch, online = status["beMetric"], status["lsMetric"]
    own = [one for one in status["podsMetric"] if one["qos"] == "BE"]
    for what in ("cpu", "memory"):
        whole = quantity.milli(status["nodeMetric"]["usage"][what])
        parts = [quantity.milli(one["podUsage"]["resources"][what]) for one in own]
        assert quantity.milli(batch["usage"][what]) == sum(parts)
        assert quantity.milli(online["usage"][what]) == whole - sum(parts)
    asked = standing.pods["lent"]["spec"]["containers"]
    requests = [one["resources"]["requests"] for one in asked]
    assert quantity.milli(batch["request"]["cpu"]) == sum(
        int(one[names.BATCH_CPU]) for one in requests
    )
    assert quantity.whole(batch["request"]["memory"]) == sum(
        quantity.whole(one[names.BATCH_MEMORY]) for one in requests
    )
