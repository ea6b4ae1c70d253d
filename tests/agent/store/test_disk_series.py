"""Both stores of samples: all in memory, or the older ones on disk."""

import contextlib
import random

import pytest

from agent.store import checkpoints, disk_series, time_series
from tests.agent import test_app

world = test_app.world
CPU = ("pod", "a", "cpu")


@pytest.fixture
def blocks(tmp_path):
    made = disk_series.Blocks(tmp_path)
    yield made
    made.close()


def on_disk(blocks, most=10_000_000):
    return time_series.Histories(most, most_samples=disk_series.MOST_SAMPLES, make=blocks.series)


def rows(blocks):
    return blocks._connection.execute("SELECT count(*) FROM blocks").fetchone()[0]


@pytest.mark.parametrize("seed", range(6))
def test_the_two_stores_answer_alike(blocks, seed):
    chance = random.Random(seed)
    memory, disk = time_series.Histories(), on_disk(blocks)
    at = 0.0
    for _ in range(3000):
        at += chance.choice((0.0, 1.0, 1.0, 1.0, 40.0 if seed % 2 else 1.0))
        key, value = chance.choice((CPU, CPU, ("node", "cpu"))), chance.uniform(0, 9)
        sample = (key, at - chance.choice((0, 0, 5)), value, 1800.0)
        for store in (memory, disk):
            store.add(*sample)
        if chance.random() < 0.03:
            start = at - chance.uniform(0, 2500)
            end = start + chance.uniform(0, 2500)
            for ask in (
                lambda store: list(store.get(key).window(start, end)),  # noqa: B023 - at once
                lambda store: store.get(key).covered(start, end),  # noqa: B023
                lambda store: store.get(key).newest,  # noqa: B023
                lambda store: store.average(key, start, end),  # noqa: B023
                lambda store: store.quantile(key, 0.9, start, end),  # noqa: B023
                lambda store: store.newest(key, start),  # noqa: B023
                lambda store: [(one.key, list(one.values)) for one in store.kept()],
            ):
                assert ask(memory) == ask(disk)
            for store in (memory, disk):
                store.prune(at)
            assert len(memory) == len(disk)
            assert memory.samples <= disk.samples <= memory.samples + 2 * disk_series.BLOCK
    assert blocks.problem == ""


def test_long_windows_keep_their_resolution_and_little_stays_in_memory(blocks):
    memory, disk = time_series.Histories(), on_disk(blocks)
    for second in range(10_000):
        for store in (memory, disk):
            store.add(CPU, second, float(second % 7), 9000)
    series = disk.get(CPU)
    assert list(series.window(1500, 9999)) == [float(n % 7) for n in range(1500, 10_000)]
    assert len(memory.get(CPU).window(1500, 9999)) < 2048
    assert len(series._times) <= disk_series.TAIL
    # What left the window leaves the disk, as does a series without news.
    assert len(series) <= 9001 + disk_series.BLOCK
    assert rows(blocks) == len(series._blocks)
    disk.prune(100_000)
    assert (len(disk), rows(blocks)) == (0, 0)


def test_what_is_on_disk_is_bounded_and_the_oldest_go(blocks):
    disk = on_disk(blocks, most=20_000)
    for second in range(3000):
        for number in range(10):
            disk.add(str(number), second, float(second), 10_000)
        disk.prune(second)
    assert disk.samples <= 20_000 * 1.1
    assert rows(blocks) * disk_series.BLOCK <= 20_000 * 1.1
    assert list(disk.get("3").window(2900, 3000)) == [float(n) for n in range(2900, 3000)]


def test_samples_are_kept_over_a_restart(blocks, tmp_path):
    disk = on_disk(blocks)
    for second in range(1500):
        disk.add(CPU, second, float(second), 5000)
    file = checkpoints.SampleFile(tmp_path / "samples")
    assert file.write(checkpoints.pack(disk.kept(), checkpoints.Moment(1e9, 1500.0, "boot")))
    with contextlib.closing(disk_series.Blocks(tmp_path / "again")) as others:
        for again in (on_disk(others), time_series.Histories()):
            assert file.load(again, checkpoints.Moment(1e9, 1500.0, "boot")) == 1
            assert list(again.get(CPU).window(0, 1500)) == [float(n) for n in range(1500)]


def test_nothing_is_left_in_the_folder(blocks, tmp_path):
    on_disk(blocks).add(CPU, 1, 1.0, 10)
    assert list(tmp_path.iterdir()) == []


def test_without_a_disk_the_latest_samples_remain(tmp_path):
    (tmp_path / "file").write_text("")
    blocks = disk_series.Blocks(tmp_path / "file")
    assert "File exists" in blocks.problem
    disk = on_disk(blocks)
    for second in range(2000):
        disk.add(CPU, second, float(second), 5000)
    assert list(disk.get(CPU).window(1900, 2000)) == [float(n) for n in range(1900, 2000)]
    assert disk.samples <= disk_series.TAIL


def test_a_disk_that_fails_later_is_named(blocks):
    disk = on_disk(blocks)
    for second in range(1000):
        disk.add(CPU, second, float(second), 5000)
    blocks._connection.execute("DROP TABLE blocks")
    for second in range(1000, 2000):
        disk.add(CPU, second, float(second), 5000)
    assert list(disk.get(CPU).window(1900, 2000)) == [float(n) for n in range(1900, 2000)]
    assert disk.get(CPU).window(0, 100) == time_series.array("d")
    assert "older samples are lost" in blocks.problem


@pytest.mark.parametrize("store", ["memory", "disk"])
async def test_collection_and_reports_work_the_same(world, new_pod, monkeypatch, store):
    monkeypatch.setattr(disk_series, "TAIL", 8)
    monkeypatch.setattr(disk_series, "BLOCK", 4)
    world.add_pod(new_pod("online", "Burstable"), 1500, 2 * test_app.GIB)
    spec = {"metricCollectPolicy": {"aggregateDurationSeconds": 20, "reportIntervalSeconds": 10}}
    world.create(test_app.resources.NODE_METRICS, {"spec": spec})
    async with world.agent(mode="observe", history={"store": store}) as agent:
        await world.until_ticking(lambda: world.status().get("podsMetric"))
        await world.seconds(40)
        await world.until(lambda: world.status()["nodeMetric"]["nodeUsage"])
        status = world.read()
        assert agent.health.warnings().get("memory") is None
        failing = agent.registry.value("koord_agent_history_disk_failing", {})
        assert failing == (0 if store == "disk" else None)
    (pod,) = status.pods_metric
    assert pod.pod_usage.resources == {"cpu": "1500m", "memory": "2Gi"}
    used = status.node_metric.node_usage.resources
    assert used["memory"] == "2Gi"
