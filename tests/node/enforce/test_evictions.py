"""Evictions on the real node: the right pod, through the Eviction API, once."""

import pytest_asyncio

from api import names, resources
from tests.planes import raw
from tests.planes.node import node_agents, node_cluster, node_shortage
from tests.planes.processes import audit

BUDGET = resources.POD_DISRUPTION_BUDGETS
AGENT = f"system:serviceaccount:{names.NAMESPACE}:koord-agent"
COUNTER = "koord_agent_evictions_total"


@pytest_asyncio.fixture(loop_scope="session")
async def guarded(cluster, shortage):
    """The pod that ranks lowest may not be disrupted; yields all three."""
    path = BUDGET.path(node_cluster.NAMESPACE)
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "last"}}}
    await cluster.api.post(path, {"metadata": {"name": "last"}, "spec": spec})
    await cluster.api.wait_until(
        f"{path}/last",
        lambda found: found.get("status", {}).get("currentHealthy") == 1,
        node_cluster.PATIENCE,
    )
    yield shortage
    await cluster.api.delete(f"{path}/last")


class Watched:
    """What is told of evictions: by the agent, by the API server, by events."""

    def __init__(self, cluster, agent):
        self._cluster = cluster
        self._agent = agent
        self._mark = audit.mark(cluster.audit_log)

    def calls(self):
        """The answers to evictions that the agent asked for, by pod."""
        found = {}
        for call in audit.read(self._cluster.audit_log, self._mark):
            if call.subresource == "eviction":
                assert call.user == AGENT
                found.setdefault(call.name, []).append(call.code)
        return found

    async def gone(self, pod):
        """Wait until a pod and its groups are gone, and until nothing more is wanted."""
        cluster = self._cluster
        groups = [cluster.pod_group(name, pod) for name in ("cpu", "memory", "cpuset", "pids")]
        name = pod["metadata"]["name"]
        await cluster.api.wait_until(
            f"{node_cluster.PODS}/{name}", lambda found: found is None, node_cluster.PATIENCE
        )
        await cluster.gone(groups)

    async def audited(self, pod):
        """What the agent's own audit says of a pod."""
        said = await node_agents.told(
            self._cluster, self._agent, "/events", lambda found: _of(found, pod)
        )
        return _of(said, pod)

    async def posted(self, pod, reason):
        """The event of a pod."""
        path = resources.EVENTS.path(node_cluster.NAMESPACE)

        async def found():
            for event in (await self._cluster.api.get(path))["items"]:
                regarded = event["regarding"]["uid"] == pod["metadata"]["uid"]
                if regarded and event["reason"] == reason:
                    return event
            return None

        return await raw.eventually(found, node_cluster.PATIENCE)

    async def counted(self, outcome):
        return await node_agents.figure(self._cluster, self._agent, COUNTER, outcome=outcome)


def _of(said, pod):
    return [one for one in said["Events"] if one.get("uid") == pod["metadata"]["uid"]]


async def stays(cluster, pod):
    """Whether a pod is still the same and nobody asked it to go."""
    found = await cluster.api.get(f"{node_cluster.PODS}/{pod['metadata']['name']}")
    same = found["metadata"]["uid"] == pod["metadata"]["uid"]
    return same and "deletionTimestamp" not in found["metadata"]


async def test_too_much_is_requested(cluster, standing, enforcing, guarded):
    """The lowest may not be disrupted, so the next one goes, once, and that is enough."""
    seen = Watched(cluster, enforcing)
    before = await seen.counted("evicted")
    most = await node_shortage.percent(cluster)
    await cluster.strategy(**node_shortage.strategy(most))
    await seen.gone(guarded["low"])
    calm = "nothing has to be given back"
    await node_agents.told(
        cluster,
        enforcing,
        "/debug/audit",
        lambda found: found["strategies"]["memory-evict"]["reason"] == calm,
    )
    assert await stays(cluster, guarded["last"])
    assert await stays(cluster, guarded["high"])
    calls = seen.calls()
    assert calls["low"] == [201]
    assert set(calls["last"]) == {429}
    assert set(calls) == {"low", "last"}
    (record,) = await seen.audited(guarded["low"])
    assert record["reason"] == "evicted"
    assert f"at most {most} % may be" in record["message"]
    assert {one["reason"] for one in await seen.audited(guarded["last"])} == {"refused"}
    event = await seen.posted(guarded["low"], "evictPodSuccess")
    assert event["note"] == record["message"]
    await seen.posted(guarded["last"], "evictPodFail")
    assert await seen.counted("evicted") == before + 1
    assert await seen.counted("refused") >= 1
    print(f"{record['name']} evicted: {record['message']}; last refused {len(calls['last'])} times")


async def test_too_much_is_used(cluster, standing, enforcing, guarded):
    """A node that always uses more than the threshold loses all batch that may be evicted."""
    seen = Watched(cluster, enforcing)
    told = node_shortage.strategy(100)
    told |= {"memoryEvictThresholdPercent": 1, "memoryEvictLowerPercent": 0}
    await cluster.strategy(**told)
    for name in ("low", "high"):
        await seen.gone(guarded[name])
    assert await stays(cluster, guarded["last"])
    for pod in standing.pods.values():
        assert await stays(cluster, pod)
    calls = seen.calls()
    assert calls.pop("last", [429])[0] == 429
    assert calls == {"low": [201], "high": [201]}
    for name in ("low", "high"):
        (record,) = await seen.audited(guarded[name])
        assert record["reason"] == "evicted"
        assert "of its memory, threshold 1 %" in record["message"]
        await seen.posted(guarded[name], "evictPodSuccess")
    print(f"low and high evicted: {record['message']}")


async def test_too_little_cpu_is_left(cluster, standing, enforcing, shortage):
    """Best effort gets 0.02 cores of the 0.21 it requests, which is too little; of 0.19 not."""
    seen = Watched(cluster, enforcing)
    bounds = {"cpuEvictBESatisfactionLowerPercent": 10, "cpuEvictBESatisfactionUpperPercent": 11}
    await cluster.strategy(**node_cluster.HOLD | bounds | {"cpuEvictTimeWindowSeconds": 2})
    await seen.gone(shortage["last"])
    await node_agents.told(
        cluster,
        enforcing,
        "/debug/audit",
        lambda found: "has to be given back" in found["strategies"]["cpu-evict"]["reason"],
    )
    assert seen.calls() == {"last": [201]}
    for name in ("low", "high"):
        assert await stays(cluster, shortage[name])
    (record,) = await seen.audited(shortage["last"])
    assert record["reason"] == "evicted"
    assert record["message"].startswith("best effort gets 0.02 of the 0.21 cores it requests")
    print(f"last evicted: {record['message']}")
