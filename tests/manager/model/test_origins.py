"""Pods of one template share what is kept of it, unless it is large."""

from api.kubernetes import core
from manager.model import origins


def pod(labels: dict[str, str]) -> core.Pod:
    return core.Pod(metadata=core.ObjectMeta(name="p", labels=labels), spec=core.PodSpec())


def test_small_ones_are_shared() -> None:
    first, second = (origins.of(pod({"app": "a", "b": "c"})) for _ in range(2))
    assert first is second
    assert first.labels == {"app": "a", "b": "c"}


def test_large_ones_are_kept_by_their_pods_alone() -> None:
    """Whoever writes others each time fills no memory."""
    large = {f"key-{number}": "x" * 60 for number in range(40)}
    first, second = (origins.of(pod(large)) for _ in range(2))
    assert first == second
    assert first is not second
