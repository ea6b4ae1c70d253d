"""What every process is once it runs: where it listens, how it is, and how it ends."""

import dataclasses

from process.http import health
from process.runtime import metrics, supervise


@dataclasses.dataclass(frozen=True, slots=True)
class RunningProcess:
    """A process that listens; more fields say what else it is made of."""

    url: str
    """Where it is called; empty where nothing calls it."""
    health_url: str
    health: health.Health
    registry: metrics.Registry
    supervisor: supervise.Supervisor

    async def stopped(self) -> None:
        """Wait until a supervised task fails and raise its error."""
        await self.supervisor.stopped()
