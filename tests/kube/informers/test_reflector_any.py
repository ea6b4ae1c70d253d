"""Whatever fails of lists and watches, and however often: the store ends in the truth."""

import random
from collections.abc import Callable
from typing import Any

import pytest

from process.runtime import clock as clocks
from tests.kube.informers.reflections import GONE, PODS, Kept, Pod, bookmark, deleted


class Unreliable:
    """A changing cluster behind a server that fails in every way at random."""

    def __init__(self, server: Any, pod: Pod, seed: int) -> None:
        self.living: dict[str, dict[str, Any]] = {}
        self.log: list[dict[str, Any]] = []
        self.is_calm = False
        self._server = server
        self._pod = pod
        self._rng = random.Random(seed)
        self._compacted = 0

    @property
    def version(self) -> int:
        return len(self.log)

    def change(self) -> None:
        version = self.version + 1
        name = f"p{self._rng.randrange(6)}"
        old = self.living.pop(name, None)
        if old is not None and self._rng.random() < 0.4:
            metadata = {**old["metadata"], "resourceVersion": str(version)}
            self.log.append(deleted({**old, "metadata": metadata}))
            return
        uid = old["metadata"]["uid"] if old else f"u{version}"
        self.living[name] = self._pod(name, version, uid=uid, node=f"n{self._rng.randrange(3)}")
        self.log.append({"type": "MODIFIED", "object": self.living[name]})

    async def reply(self, request: Any) -> Any:
        server, rng = self._server, self._rng
        if not self.is_calm:
            for _ in range(rng.randrange(4)):
                self.change()
            if rng.random() < 0.2:
                fault = rng.choice([server.refuse(500), server.drop(), server.refuse(403)])
                return await fault(request)
        if "watch" not in request.query:
            return await server.page(list(self.living.values()), self.version)(request)
        return await self._watch(int(request.query["resourceVersion"]))(request)

    def _watch(self, since: int) -> Any:
        server, rng = self._server, self._rng
        if not self.is_calm and rng.random() < 0.2:
            self._compacted = self.version
        if since < self._compacted:
            return rng.choice([server.refuse(410, "Expired"), server.watch(GONE)])
        replayed = self.log[-5:] if rng.random() < 0.5 else []
        end = "hold" if self.is_calm else rng.choice(["end", "drop"])
        events = [*replayed, *self.log[since:], bookmark(self.version)]
        return server.watch(*events, then=end)


@pytest.mark.parametrize("seed", range(4))
async def test_random_faults_end_in_the_truth(
    server: Any, keep: Callable[..., Kept], pod: Pod, clock: clocks.ManualClock, seed: int
) -> None:
    cluster = Unreliable(server, pod, seed)
    for _ in range(10):
        cluster.change()
    server.on("GET", PODS, cluster.reply)
    kept = keep()
    await server.go_on(clock, lambda: len(server.seen) > 60)
    cluster.is_calm = True
    await server.go_on(clock, lambda: kept.store.version == cluster.version)
    expected = {f"shop/{name}": told["spec"]["nodeName"] for name, told in cluster.living.items()}
    assert kept.nodes == expected
    followed: dict[str, str] = {}
    for key, old, new in kept.changes:
        assert followed.get(key) == old
        followed.pop(key, None)
        if new is not None:
            followed[key] = new
    assert followed == expected
