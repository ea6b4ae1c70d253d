"""Samples that users bring along, driven through admission, scheduling and the node's decisions."""

import pathlib

import msgspec
import pytest
import yaml

from agent.decide import eviction
from agent.decide.strategies import cpu_evict, memory_evict
from agent.model import state
from agent.model.strategy_settings import Bounds, CpuEviction, MemoryEviction
from api import names, resources
from api.koordinator.metadata import qos
from api.kubernetes import core
from cli.explain.pod import pod_facts, pod_story
from cli.install import apply

MANIFESTS = pathlib.Path(__file__).parents[1] / "manifests"
CRITICAL = "system-cluster-critical"
HIGH = {"priority": "high"}
GIB = 1 << 30


def sample(name):
    (found,) = yaml.safe_load_all((MANIFESTS / name).read_text(encoding="utf-8"))
    return found


def a_pod(name, cpu):
    asked = {"cpu": cpu, "memory": "1Gi"}
    container = {"name": "c", "image": "i", "resources": {"requests": asked, "limits": asked}}
    return {"metadata": {"name": name, "labels": dict(HIGH)}, "spec": {"containers": [container]}}


@pytest.fixture
async def profiled(world):
    """A node, and the sample profile in force."""
    await world.add_node("a")
    path = resources.PODS.path("default")
    async with world.flowing():
        await apply.one(world.kube, sample("002-clustercolocationprofile-high-priority.yaml"))

        async def tried():
            answer = await world.api.call(
                "POST", path, a_pod("probe", "2"), query={"dryRun": "All"}
            )
            return answer.body["metadata"]["labels"].get(names.LABEL_QOS) == "LSE"

        for _ in range(200):
            if await tried():
                break
        else:
            raise AssertionError("the profile is not in force")
    return world


async def test_the_high_priority_profile_makes_an_lse_pod_that_is_placed(profiled):
    """Its class lies above all bands: the class LSE alone makes it one of production."""
    world = profiled
    async with world.flowing():
        made = await world.api.post(resources.PODS.path("default"), a_pod("critical", "2"))
    assert made["metadata"]["labels"][names.LABEL_QOS] == "LSE"
    assert made["spec"]["priorityClassName"] == CRITICAL
    assert made["spec"]["priority"] == 2_000_000_000
    assert made["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "2"
    assert await world.bound("critical") == "a"
    pod = msgspec.convert(world.pod("critical"), core.Pod)
    assert names.PLACEMENT in pod.metadata.annotations
    assert qos.band_of_pod(pod) is qos.Band.PROD
    assert qos.of_pod(pod) is qos.QoS.LSE
    told = pod_story.told(pod_facts.Facts("default/critical", world.pod("critical")))
    text = "\n".join(told.chapters[0].sentences)
    assert "It counts as LSE in band koord-prod and asks for 2 cores" in text
    assert "contradicts" not in text


@pytest.mark.parametrize("cpu", ["1500m", "0.5"])
async def test_a_fraction_of_a_cpu_is_refused_with_the_name_of_the_profile(profiled, cpu):
    world = profiled
    async with world.flowing():
        answer = await world.api.call("POST", resources.PODS.path("default"), a_pod("half", cpu))
    assert answer.status in (400, 403)
    assert "high-priority" in answer.message
    assert "whole number" in answer.message


def high_priority_pod():
    """The sample as admission leaves it: its class gives the value, it requests nothing."""
    raw, value = (
        sample("003-pod-high-priority-pod.yaml"),
        sample("003-priorityclass-high-priority.yaml"),
    )
    assert raw["spec"]["priorityClassName"] == value["metadata"]["name"]
    assert value["value"] == 100_000
    raw["spec"]["priority"] = value["value"]
    return raw


def placed(raw, name, **changes):
    metadata = {**raw["metadata"], "name": name, "namespace": "default", "uid": f"uid-{name}"}
    metadata["labels"] = {names.LABEL_EVICTION_ENABLED: "true", **changes.pop("labels", {})}
    spec = {**raw["spec"], **changes}
    body = {"metadata": metadata, "spec": spec, "status": {"phase": "Running"}}
    return state.PodState(
        msgspec.convert(body, core.Pod), "BestEffort", group=name,
        usage=state.Usage(cpu=1.0, memory=2 * GIB),
    )  # fmt: skip


def under_pressure(labels):
    """A node that uses too much, with the sample among pods of every lower priority."""
    raw = high_priority_pod()
    pods = [placed(raw, "high-priority-pod", labels=labels)]
    pods += [
        placed(raw, f"p{value}", priority=value, labels=labels)
        for value in (99_999, 9500, 7000, 5500, 3000, 0)
    ]
    node = msgspec.convert(
        {"metadata": {"name": "n"}, "status": {"capacity": {"cpu": "8", "memory": "16Gi"}}},
        core.Node,
    )
    return state.NodeState(
        at=0, node=node, pods=tuple(pods), usage=state.Usage(cpu=7.5, memory=15 * GIB)
    )


EVERYBODY = 2_000_001_000
BEST_EFFORT = {names.LABEL_QOS: "BE"}
MEMORY = MemoryEviction(used=Bounds(75, 10), highest_priority=EVERYBODY)
CPU = CpuEviction(used=Bounds(85, 80), highest_priority=EVERYBODY)


@pytest.mark.parametrize(
    ("labels", "tasks", "feature"),
    [
        pytest.param(
            {}, lambda now: memory_evict.tasks(now, MEMORY), memory_evict.MEMORY_EVICT,
            id="memory by priority",
        ),
        pytest.param(
            BEST_EFFORT, lambda now: memory_evict.tasks(now, MEMORY), memory_evict.BE_MEMORY_EVICT,
            id="memory of best effort",
        ),
        pytest.param(
            {}, lambda now: cpu_evict.tasks(now, CPU, cpu_evict.Window(node=7.5)),
            cpu_evict.CPU_EVICT, id="cpu by priority",
        ),
    ],
)  # fmt: skip
def test_a_priority_of_100000_leaves_last_although_it_requests_nothing(labels, tasks, feature):
    found = tasks(under_pressure(labels))[feature]
    assert not isinstance(found, eviction.Idle), found
    order = [pod.pod.metadata.name for pod in found.victims]
    assert order[-1] == "high-priority-pod"
    assert order[-2:-4:-1] == ["p99999", "p9500"]
    assert len(order) == 7


def test_a_priority_of_100000_is_none_of_those_that_a_threshold_names():
    """The sample is no candidate at all where only bands below production may be evicted."""
    settings = msgspec.structs.replace(MEMORY, highest_priority=7999)
    found = memory_evict.tasks(under_pressure({}), settings)[memory_evict.MEMORY_EVICT]
    names_of = {pod.pod.metadata.name for pod in found.victims}
    assert "high-priority-pod" not in names_of
    assert {"p5500", "p3000", "p7000"} <= names_of
