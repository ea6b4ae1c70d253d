"""Figures of runs with and without Reservations, and of owners that waited; pure but for output."""

import dataclasses
from collections.abc import Mapping, Sequence

from benchmarks import figures
from benchmarks.plane import rig
from benchmarks.reservations import waits

WITHOUT, WITH = "without", "with"
_GOAL_RATE = 0.85
_GOAL_SECONDS = 1.0


@dataclasses.dataclass(frozen=True, slots=True)
class Drain:
    """One drain of the queue."""

    run: rig.Run
    used: int
    """Pods that were given a Reservation."""
    manager: float
    """Milliseconds of processor time of the manager per waiting pod."""

    @property
    def rate(self) -> float:
        """Pods per second."""
        return self.run.pods_per_second

    @property
    def extender(self) -> float:
        """Milliseconds of processor time of the extender per pod."""
        return self.run.milliseconds["extender"]

    @property
    def work(self) -> float:
        """Milliseconds of processor time of all programs per pod; varies less than the rate."""
        return sum(self.run.milliseconds.values()) + self.manager

    def line(self) -> str:
        """Return in one line what was found."""
        programs = {**self.run.milliseconds, "manager": self.manager}
        worked = ", ".join(f"{name} {spent:.2f}" for name, spent in programs.items())
        return (
            f"{self.rate:.0f} pods/s, {self.used} in a Reservation, {worked} and together "
            f"{self.work:.2f} ms per pod, extender {self.run.resident:.0f} MiB"
        )


Runs = Mapping[str, Sequence[Drain]]


def ratio(runs: Runs) -> str:
    """Return in one line how the variants of the last round compare."""
    there, without = runs[WITH][-1].rate, runs[WITHOUT][-1].rate
    return f"{there / without:.2f} of the rate without ({there:.0f} and {without:.0f} pods/s)"


def show(runs: Runs, found: Sequence[waits.Wait], what: str) -> None:
    """Print one line for each figure."""
    if runs[WITH]:
        figures.show(
            figures.paired(
                "reservations.rate", f"pods/s, {what}", "pods/s",
                [one.rate for one in runs[WITH]], [one.rate for one in runs[WITHOUT]],
                f"the same without Reservations; goal {_GOAL_RATE}",
            ),
            figures.paired(
                "reservations.rate.cost", f"processor time of the extender per pod, {what}", "ms",
                [one.extender for one in runs[WITH]], [one.extender for one in runs[WITHOUT]],
                "the same without Reservations",
            ),
            figures.paired(
                "reservations.rate.work", f"processor time of all programs per pod, {what}", "ms",
                [one.work for one in runs[WITH]], [one.work for one in runs[WITHOUT]],
                "the same without Reservations",
            ),
            figures.plain(
                "reservations.rate.manager", f"processor time of the manager per pod, {what}", "ms",
                [one.manager for one in runs[WITH]],
            ),
        )  # fmt: skip
    if not found:
        return
    delays = [one.bound - one.available for one in found]
    placed = [one.available - one.created for one in found]
    goal = f"goal at most {_GOAL_SECONDS:g}"
    for share, aim in ((0.5, ""), (0.99, goal)):
        name, text = f"p{share * 100:.0f}", f"{share * 100:.0f} % of {len(found)}, {what}"
        figures.show(
            figures.plain(
                f"reservations.owner.{name}", f"Available to waiting owner bound, {text}", "s",
                [figures.percentile(delays, share)], aim,
            ),
            figures.plain(
                f"reservations.placed.{name}", f"Reservation created to Available, {text}", "s",
                [figures.percentile(placed, share)],
            ),
        )  # fmt: skip
