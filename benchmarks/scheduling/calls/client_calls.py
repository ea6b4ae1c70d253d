"""Calls extenders as kube-scheduler does, through its own client code, on a generated cluster."""

import asyncio
import contextlib
import dataclasses
import json
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from api.wire import durations
from benchmarks import figures
from benchmarks.plane import feed, golang
from benchmarks.plane.extenders import Extender

_WARM = 20
_PENDING = 6000
FLAGS = (
    "--plugins.loadAware.nodeMetricExpirationSeconds=36000",
    "--freshness.idleSeconds=3600",
    "--freshness.proofSeconds=5",
    "--server.maxBodyBytes=8388608",
    "--log.level=warning",
)
"""Settings for generated clusters, whose load reports never change."""


@dataclasses.dataclass(frozen=True, slots=True)
class Plan:
    """How often to call."""

    blocks: int
    calls: int
    """Of one block."""


@dataclasses.dataclass(frozen=True, slots=True)
class Taken:
    """What calls of one verb took with one extender."""

    blocks: list[list[float]]
    """Microseconds of each call, as the scheduler sees it."""
    work: float
    """Processor microseconds of the extender per call."""

    def percentiles(self, share: float) -> list[float]:
        """Return one percentile for each block."""
        return [figures.percentile(block, share) for block in self.blocks]


class Cluster:
    """A generated cluster, and pods that no call was about yet."""

    def __init__(self, folder: Path, kubeconfig: Path) -> None:
        self.folder = folder
        self.kubeconfig = kubeconfig
        self._used = 0

    async def measure(
        self, verb: str, names: int, targets: Sequence[Extender], plan: Plan
    ) -> list[Taken]:
        """Call every extender, block by block in turn."""
        caller = str(golang.program("goclient"))
        before = [figures.cpu_seconds(target.pid) for target in targets]
        process = await asyncio.create_subprocess_exec(
            caller,
            f"--nodes={self.folder / ('free' if verb == 'bind' else 'nodes')}",
            f"--pods={self.folder / 'pods'}",
            f"--verb={verb}", f"--names={names}", f"--first={self._used}", f"--warm={_WARM}",
            f"--calls={plan.calls}", f"--blocks={plan.blocks}",
            *(target.url for target in targets),
            stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        output, _ = await process.communicate()
        if process.returncode:
            raise SystemExit(f"{verb} with {names} names failed")
        calls = plan.calls * plan.blocks
        if verb == "bind":
            self._used += len(targets) * calls
        after = [figures.cpu_seconds(target.pid) for target in targets]
        return [
            Taken(blocks, (end - start) * 1e6 / calls)
            for blocks, start, end in zip(json.loads(output), before, after, strict=True)
        ]


@contextlib.asynccontextmanager
async def generated(nodes: int, pods: int) -> AsyncIterator[Cluster]:
    """Generate a cluster of this size with pods that wait."""
    async with contextlib.AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="koord-bench-")))
        moment = durations.moment(time.time())
        url = await stack.enter_async_context(feed.running(nodes, pods, _PENDING, moment))
        names = [feed.node_name(number) for number in range(nodes)]
        (folder / "nodes").write_text("\n".join(names))
        free = (name for at, name in enumerate(names) if 0 < at % 20 < 10)
        (folder / "free").write_text("\n".join(free))
        waiting = (feed.pod_text(number, "", moment="") for number in range(pods, pods + _PENDING))
        (folder / "pods").write_text("\n".join(waiting))
        yield Cluster(folder, feed.write_kubeconfig(folder / "kubeconfig", url))
