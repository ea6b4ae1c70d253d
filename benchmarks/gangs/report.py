"""Figures of gangs beside published ones; pure but for printing."""

import dataclasses
from collections.abc import Mapping, Sequence

from benchmarks import figures
from benchmarks.gangs import programs

GANGS, PLAIN, GATED = "gangs", "plain", "gated"
"""Many small gangs, the same pods without gangs, and these behind a gate of no gang: each is opened
by one write as soon as the pod is there, which is the least that a gate can cost."""
ALONE, ALONE_GATED = "alone", "alone-gated"
"""The latter two with kube-scheduler alone, and without webhook."""
KINDS = (GANGS, PLAIN, GATED, ALONE, ALONE_GATED)
_PUBLISHED_BOUND, _PUBLISHED_REFUSED = 48.7, 249.5
"""Seconds of a gang scheduler in Go on 500 simulated nodes: a gang of 512, one without room."""
_GOAL_BOUND, _GOAL_REFUSED, _GOAL_RATE = 5.0, 2.0, 0.8


@dataclasses.dataclass(frozen=True, slots=True)
class Whole:
    """One large gang: seconds from the creation of its last member."""

    planned: float
    """To the first gate that is open."""
    opened: float
    """To the last gate that is open."""
    first: float
    """To the first member that is bound."""
    bound: float
    """To the last member that is bound."""
    cpu: Mapping[str, float]
    """Seconds of processor time by program, from the first creation on."""

    def line(self) -> str:
        """Return in one line what was seen."""
        return (
            f"first gate open after {self.planned:.2f} s, all after {self.opened:.2f} s; first "
            f"member bound after {self.first:.2f} s, all after {self.bound:.2f} s; {used(self.cpu)}"
        )


@dataclasses.dataclass(frozen=True, slots=True)
class Drain:
    """Many pods that came as fast as they could be created."""

    rate: float
    """Pods per second from the first creation to the last binding."""
    rest: float
    """Pods per second that were bound after the last creation."""
    per_pod: Mapping[str, float]
    """Seconds of processor time by program for each pod."""

    def line(self) -> str:
        """Return in one line what was seen."""
        return (
            f"{self.rate:.1f} pods/s, {self.rest:.1f} after the last creation; per pod "
            f"{used(self.per_pod, 1e3, 'ms')}"
        )


def used(cpu: Mapping[str, float], factor: float = 1.0, unit: str = "s") -> str:
    """Return processor time by program."""
    return ", ".join(f"{name} {value * factor:.2f} {unit}" for name, value in cpu.items())


@dataclasses.dataclass(frozen=True, slots=True)
class Found:
    """Everything that was measured."""

    whole: Mapping[str, list[Whole]]
    """By transport."""
    refused: Mapping[str, list[float]]
    """By transport: seconds from the creation of the last member until every member says why."""
    drains: Mapping[str, list[Drain]]

    @classmethod
    def nothing(cls) -> "Found":
        """Return what there is before anything was measured."""
        return cls(
            {name: [] for name in programs.TRANSPORTS},
            {name: [] for name in programs.TRANSPORTS},
            {kind: [] for kind in KINDS},
        )


def table(found: Found, members: int, gangs: str) -> list[str]:
    """Return the published figures beside ours, as lines of a table."""
    rows = [("", "published, Go, 500 nodes", "here", "goal")]
    for transport, name in programs.TRANSPORTS.items():
        if runs := found.whole[transport]:
            value = figures.spread([one.bound for one in runs])
            what = f"gang of {members}, last member created to all bound, {name}"
            rows.append(
                (what, f"{_PUBLISHED_BOUND} s (512)", f"{value} s", f"<= {_GOAL_BOUND:g} s")
            )
        if times := found.refused[transport]:
            what = f"impossible gang of 10, last member created to all say why, {name}"
            here = f"{figures.spread(times)} s"
            rows.append((what, f"{_PUBLISHED_REFUSED} s", here, f"<= {_GOAL_REFUSED:g} s"))
    if found.drains[GANGS] and found.drains[PLAIN]:
        ratios = [a.rate / b.rate for a, b in _pairs(found, GANGS, PLAIN)]
        what = f"{gangs}, pods/s of the same pods without gangs"
        rows.append((what, "-", figures.spread(ratios), f">= {_GOAL_RATE:g}"))
    return [f"| {' | '.join(row)} |" for row in rows]


def _pairs(found: Found, kind: str, other: str) -> list[tuple[Drain, Drain]]:
    return list(zip(found.drains[kind], found.drains[other], strict=False))


def show(found: Found, members: int, what: str) -> None:
    """Print one line for each figure."""
    for transport, name in programs.TRANSPORTS.items():
        if runs := found.whole[transport]:
            _show_whole(runs, f"gangs.bound.{transport}", f"{name}, gang of {members}, {what}")
        if times := found.refused[transport]:
            text = f"gang of 10 without room, last created to all say why, {name}, {what}"
            goal = f"goal at most {_GOAL_REFUSED:g}; published {_PUBLISHED_REFUSED}"
            figures.show(figures.plain(f"gangs.refused.{transport}", text, "s", times, goal))
    if found.drains[GANGS] and found.drains[PLAIN]:
        _show_drains(_pairs(found, GANGS, PLAIN), what)
    for kind, other in ((GATED, PLAIN), (ALONE_GATED, ALONE)):
        if pairs := _pairs(found, kind, other):
            _show_gated(pairs, f"gangs.rate.{kind}", what)


def _show_whole(runs: Sequence[Whole], name: str, what: str) -> None:
    goal = f"goal at most {_GOAL_BOUND:g}; published for 512 {_PUBLISHED_BOUND}"
    text = f"last member created to all bound, {what}"
    figures.show(figures.plain(name, text, "s", [one.bound for one in runs], goal))
    for program in runs[0].cpu:
        text = f"processor time of {program}, {what}"
        values = [one.cpu[program] for one in runs]
        figures.show(figures.plain(f"{name}.cpu.{program}", text, "s", values))


def _show_drains(pairs: Sequence[tuple[Drain, Drain]], what: str) -> None:
    against = "the same pods without gangs"
    goal = f"{against}; goal {_GOAL_RATE}"
    gangs, plain = zip(*pairs, strict=True)
    figures.show(
        figures.paired(
            "gangs.rate", f"pods/s, first created to last bound, {what}", "pods/s",
            [one.rate for one in gangs], [one.rate for one in plain], goal,
        ),
        figures.plain(
            "gangs.rate.rest", f"pods/s bound after the last creation, {what}", "pods/s",
            [one.rest for one in gangs],
        ),
    )  # fmt: skip
    for program in pairs[0][0].per_pod:
        values = [[one.per_pod[program] * 1e3 for one in each] for each in (gangs, plain)]
        text = f"processor time of {program} per pod, {what}"
        figures.show(figures.paired(f"gangs.rate.cpu.{program}", text, "ms", *values, against))


def _show_gated(pairs: Sequence[tuple[Drain, Drain]], name: str, what: str) -> None:
    against = "the same pods without a gate"
    rates = [[one.rate for one in each] for each in zip(*pairs, strict=True)]
    text = f"pods/s of pods whose gates are opened one by one, {what}"
    figures.show(figures.paired(name, text, "pods/s", *rates, against))
    work = [[sum(one.per_pod.values()) * 1e3 for one in each] for each in zip(*pairs, strict=True)]
    text = f"processor time of all programs per pod, {what}"
    figures.show(figures.paired(f"{name}.cpu", text, "ms", *work, against))
