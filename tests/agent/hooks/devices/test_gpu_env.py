"""What containers are told about their GPUs."""

import json

import pytest

from agent.hooks.devices import gpu_env

KEY, LABEL = "scheduling.koordinator.sh/device-allocated", "koordinator.sh/gpu-isolation-provider"
MEMORY, RATIO, CORE = (f"koordinator.sh/gpu-{name}" for name in ("memory", "memory-ratio", "core"))


def container(gpus, isolated=False):
    written = gpus if isinstance(gpus, str) else json.dumps({"gpu": gpus})
    labels = {LABEL: "HAMi-core"} if isolated else {}
    return gpu_env.Container(labels, {KEY: written})


def part(**resources):
    return {"minor": 1, "resources": {MEMORY: "8Gi", RATIO: "50", **resources}}


def test_without_a_gpu_nothing_is_added():
    for written in ("", "{}", '{"gpu":[]}', '{"rdma":[{"minor":1}]}'):
        assert gpu_env.injection(container(written)) == gpu_env.Injection()


def test_the_minors_are_named_in_their_order():
    found = gpu_env.injection(container([{"minor": 3}, {"minor": 0}]))
    assert found.environment == {"NVIDIA_VISIBLE_DEVICES": "3,0"}
    assert found.mounts == {}


def test_a_part_of_a_card_is_isolated():
    found = gpu_env.injection(container([part(**{CORE: "30"})], isolated=True))
    assert found.environment == {
        "NVIDIA_VISIBLE_DEVICES": "1",
        "CUDA_DEVICE_MEMORY_LIMIT": str(8 << 30),
        "CUDA_DEVICE_SM_LIMIT": "30",
        "LD_PRELOAD": gpu_env.LIBRARY,
    }
    assert set(found.mounts) == {gpu_env.LIBRARY, gpu_env.LOCK}


def test_names_of_an_older_release_are_understood():
    def named(prefix):
        amounts = {"memory": "8Gi", "memory-ratio": "50", "core": "30"}
        resources = {f"{prefix}/gpu-{name}": value for name, value in amounts.items()}
        return container([{"minor": 1, "resources": resources}], isolated=True)

    old, present = (gpu_env.injection(named(p)) for p in ("kubernetes.io", "koordinator.sh"))
    assert old == present
    assert "CUDA_DEVICE_SM_LIMIT" in old.environment


def test_a_part_without_cores_has_no_limit_of_them():
    found = gpu_env.injection(container([part()], isolated=True))
    assert "CUDA_DEVICE_SM_LIMIT" not in found.environment


def test_a_whole_card_is_not_isolated():
    found = gpu_env.injection(container([part(**{RATIO: 100})], isolated=True))
    assert set(found.environment) == {"NVIDIA_VISIBLE_DEVICES"}


@pytest.mark.parametrize(
    ("gpus", "missing"),
    [
        ("{", KEY),
        ([{"minor": 1}], RATIO),
        ([{"minor": 1, "resources": {RATIO: "50"}}], MEMORY),
        ([part(**{MEMORY: "x"})], MEMORY),
    ],
    ids=["unreadable", "no share", "no memory", "no quantity"],
)
def test_what_cannot_be_honoured_is_named(gpus, missing):
    with pytest.raises(gpu_env.AllocationError, match=missing):
        gpu_env.injection(container(gpus, isolated=True))
