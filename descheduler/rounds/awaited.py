"""Jobs that a round has created and that the watch does not show yet. Pure.

A round that follows at once must not decide about their pods again.
"""

from collections.abc import Mapping
from typing import Final

from descheduler.model import objects

_PATIENCE_SECONDS: Final = 60.0


class Awaited:
    """Remembers created jobs until the watch has them, or a minute has passed."""

    def __init__(self) -> None:
        self._jobs: dict[str, tuple[objects.Job, float]] = {}

    def add(self, job: objects.Job, now: float) -> None:
        """Remember a job as the API server has answered it; `now` never goes back."""
        self._jobs[job.name] = job, now + _PATIENCE_SECONDS

    def joined(self, shown: Mapping[str, objects.Job], now: float) -> Mapping[str, objects.Job]:
        """Return the jobs that the watch shows and those that it will show."""
        self._jobs = {
            name: (job, until)
            for name, (job, until) in self._jobs.items()
            if name not in shown and until > now
        }
        if not self._jobs:
            return shown
        return {**shown, **{name: job for name, (job, _) in self._jobs.items()}}
