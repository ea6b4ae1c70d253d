"""The agent on the real node as it only observes: the same decisions, and nothing is touched."""

from tests.planes.node import node_agents, node_cluster, node_shortage, node_tree


def announced(said):
    """What an agent would have written, by property and group; the newest counts."""
    return {
        (record["role"], group): record["value"]
        for record in said["records"]
        if record["outcome"] == "would have written"
        for group in record["groups"]
    }


async def test_it_says_what_it_would_write_and_touches_nothing(cluster, standing, observing):
    await cluster.strategy("cpu-burst", policy="auto")
    expected = {**standing.batch(), **standing.cpusets(), **standing.bursts()}

    def complete(said):
        found = announced(said)
        return all(found.get(key) == value for key, value in expected.items())

    said = await node_agents.told(cluster, observing, "/debug/audit", complete)
    assert {one["mode"] for one in said["strategies"].values()} == {"observe"}
    await cluster.strategy(**node_cluster.HOLD)
    key = "cpu-quota", "kubepods/besteffort"
    said = await node_agents.told(
        cluster, observing, "/debug/audit", lambda found: key in announced(found)
    )
    assert 0 < int(announced(said)[key]) <= 10_000
    assert {record["outcome"] for record in said["records"]} == {"would have written"}
    assert node_tree.differences(standing.before, node_tree.snapshot(cluster.node)) == {}
    assert await node_agents.figure(cluster, observing, "koord_agent_journal_entries") == 0
    print(f"{len(announced(said))} values would have been written, none was")


async def test_it_says_whom_it_would_evict_and_evicts_nobody(
    cluster, standing, observing, shortage
):
    most = await node_shortage.percent(cluster)
    await cluster.strategy(**node_shortage.strategy(most))

    def evicted(said):
        return [one for one in said["Events"] if one["type"] == "pod"]

    said = await node_agents.told(cluster, observing, "/events", evicted)
    assert {(one["reason"], one["name"]) for one in evicted(said)} == {
        ("would have evicted", "last")
    }
    print(evicted(said)[0]["message"])
    for name, pod in shortage.items():
        found = await cluster.api.get(f"{node_cluster.PODS}/{name}")
        assert found["metadata"]["uid"] == pod["metadata"]["uid"]
        assert "deletionTimestamp" not in found["metadata"]
    outcomes = {
        outcome: await node_agents.figure(
            cluster, observing, "koord_agent_evictions_total", outcome=outcome
        )
        for outcome in ("evicted", "refused", "failed")
    }
    assert set(outcomes.values()) == {0.0}, outcomes
