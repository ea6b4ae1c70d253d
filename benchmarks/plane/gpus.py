"""Nodes with GPUs as objects: what their agents and the manager report of them; pure."""

from collections.abc import Mapping
from typing import Any, Final

from api import names, resources

DEVICES: Final = resources.DEVICES.path()
MEMORY: Final = 16 << 30
"""Bytes of each GPU."""


def device(node: str, count: int, model: str) -> dict[str, Any]:
    """Return the Device of a node with so many GPUs of one model."""
    total = {
        names.GPU_CORE: "100",
        names.GPU_MEMORY_RATIO: "100",
        names.GPU_MEMORY: str(MEMORY),
    }
    labels = {names.LABEL_GPU_MODEL: model}
    gpus = [
        {"type": "gpu", "minor": minor, "id": f"GPU-{node}-{minor}", "health": True}
        | {"resources": total, "labels": labels}
        for minor in range(count)
    ]
    return {
        "apiVersion": resources.DEVICES.api_version,
        "kind": resources.DEVICES.kind,
        "metadata": {"name": node},
        "spec": {"devices": gpus},
    }


def offered(count: int) -> Mapping[str, str]:
    """Return what the manager adds to the allocatable resources of a node with GPUs."""
    return {names.GPU: str(100 * count)} if count else {}
