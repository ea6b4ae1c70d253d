"""A reflector under supervision."""

from collections.abc import Callable
from typing import Any

import pytest

from kube.informers import reflector
from kube.informers import store as stores
from process.runtime import supervise
from tests.kube.informers.reflections import Kept, Make, projection


@pytest.fixture
def keep(watched: Make, supervisor: supervise.Supervisor) -> Callable[..., Kept]:
    """Start to reflect pods by their node."""

    def start(kept: reflector.Projection[str] | None = None, **changes: Any) -> Kept:
        all_caches = watched(**changes)
        target = all_caches.add(kept or projection())
        told: list[stores.Change[str]] = []
        target.listen(told.append)
        all_caches.start(supervisor)
        return Kept(target, all_caches.members[0], all_caches, told)

    return start
