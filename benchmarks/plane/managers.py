"""Our manager as a process of its own."""

import contextlib
import dataclasses
import json
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from api import names
from benchmarks.plane import extenders
from process.http import ports
from process.runtime import clock as clocks
from simulator.processes import children

_PATIENCE = 120.0


@dataclasses.dataclass(frozen=True, slots=True)
class Manager:
    """A running manager."""

    pid: int
    metrics_url: str


@contextlib.asynccontextmanager
async def ours(
    folder: Path, kubeconfig: Path, controllers: Sequence[str], *flags: str
) -> AsyncIterator[Manager]:
    """Run the manager with these controllers until it is ready; its namespace has to exist."""
    (health,) = ports.take(1)
    command = [
        sys.executable, "-m", "manager", f"--kubeconfig={kubeconfig}",
        f"--controllers={json.dumps(list(controllers))}",
        "--health.host=127.0.0.1", f"--health.port={health}",
        f"--leaderElection.namespace={names.NAMESPACE}", *flags,
    ]  # fmt: skip
    url = f"http://127.0.0.1:{health}"
    child = await children.start("manager", command, folder)
    try:
        await children.ready(
            child,
            lambda: extenders.answers(f"{url}/readyz"),
            clock=clocks.SystemClock(),
            timeout_seconds=_PATIENCE,
        )
        yield Manager(child.pid, f"{url}/metrics")
    finally:
        await child.stop()
