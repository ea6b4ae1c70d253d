"""Tables and figures of runs with and without quotas; pure but for printing."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

from benchmarks import figures
from benchmarks.quota_churn import accounts
from benchmarks.quota_churn.programs import NONE, QUOTAS, STOCK

_GOAL_SECONDS = 1.0
_GOAL_RATE = 0.9


@dataclasses.dataclass(frozen=True, slots=True)
class Phase:
    """One stretch of a run: what was seen, and what each program used of the machine."""

    window: accounts.Window
    seconds: float
    cpu: Mapping[str, float]
    """Seconds of processor time by program."""
    resident: Mapping[str, float]
    """Resident memory in MiB by program."""

    @property
    def rate(self) -> float:
        """Pods per second that got a node."""
        return accounts.rate(self.window.bound_at)

    def per_pod(self, program: str) -> float:
        """Milliseconds of processor time of a program for each pod that got a node."""
        return self.cpu[program] * 1000 / len(self.window.bound_at)


@dataclasses.dataclass(frozen=True, slots=True)
class Run:
    """Both phases of one variant in one round."""

    churn: Phase
    burst: Phase
    excesses: int
    """How often a team was above its quota."""


Runs = Mapping[str, Sequence[Run]]


def line(name: str, phase: Phase) -> str:
    """Return in one line what a phase showed."""
    window = phase.window
    taken = (
        ("created→bound", window.created_to_bound),
        ("freed→gate open", window.freed_to_opened),
        ("gate open→bound", window.opened_to_bound),
        ("freed→bound", window.freed_to_bound),
    )
    shown = "; ".join(f"{what} {_percentiles(values)}" for what, values in taken if values)
    used = sum(phase.cpu.values()) / phase.seconds
    return (
        f"{name}: {len(window.bound_at)} bound, {phase.rate:.1f} pods/s, "
        f"{used:.2f} cores used; ms p50/p99: {shown}"
    )


def _percentiles(values: Sequence[float]) -> str:
    return "/".join(f"{figures.percentile(values, share) * 1e3:.0f}" for share in (0.5, 0.99))


def counted(grown: Mapping[str, float], bound: int) -> str:
    """Return in one line what our processes counted in a phase, for each pod that got a node."""
    shown = (f"{name.removeprefix('koord_')} {value / bound:.2f}" for name, value in grown.items())
    moved = [one for one in shown if not one.endswith(" 0.00")]
    return f"  per bound pod: {', '.join(moved) or 'nothing counted'}"


def ratios(runs: Mapping[str, Run]) -> Iterator[str]:
    """Yield in one line for each phase how the variants of one round compare."""
    for phase in ("churn", "burst"):
        rates = {variant: getattr(run, phase).rate for variant, run in runs.items()}
        parts = [
            f"{rates[one] / rates[other]:.2f} of {other} ({one} {rates[one]:.1f} pods/s)"
            for one, other in ((QUOTAS, NONE), (QUOTAS, STOCK), (NONE, STOCK))
            if one in rates and other in rates
        ]
        if freed := runs[QUOTAS].churn.window.freed_to_bound if QUOTAS in runs else ():
            parts += [f"freed→bound {_percentiles(freed)} ms"] if phase == "churn" else []
        if parts:
            yield f"{phase}: {'; '.join(parts)}"


def table(runs: Runs) -> None:
    """Print what each program used, by variant."""
    for phase in ("churn", "burst"):
        print(f"\n{phase}: processor time per bound pod in ms, resident memory in MiB")
        for variant, found in runs.items():
            parts: list[Phase] = [getattr(run, phase) for run in found]
            cells = ", ".join(
                f"{program} {figures.spread([part.per_pod(program) for part in parts])}"
                f" ({max(part.resident[program] for part in parts):.0f} MiB)"
                for program in parts[0].cpu
            )
            print(f"  {variant:<8}{cells}")


def show(runs: Runs, what: str) -> None:
    """Print one line for each figure."""
    if QUOTAS in runs:
        _show_latency(runs, what)
    for phase, row in (("churn", "F15.rate"), ("burst", "F15.burst")):
        rates = {
            variant: [getattr(run, phase).rate for run in found] for variant, found in runs.items()
        }
        for value, other, name, against in (
            (QUOTAS, NONE, row, f"the same without quotas; goal {_GOAL_RATE}"),
            (QUOTAS, STOCK, f"{row}.stock", "kube-scheduler alone"),
            (NONE, STOCK, f"{row}.none_stock", "kube-scheduler alone"),
        ):
            if value in rates and other in rates:
                text = f"pods/s, {phase}, {value}, {what}"
                figures.show(
                    figures.paired(name, text, "pods/s", rates[value], rates[other], against)
                )


def _show_latency(runs: Runs, what: str) -> None:
    windows = [run.churn.window for run in runs[QUOTAS]]
    for share, goal in ((0.5, ""), (0.99, f"goal at most {_GOAL_SECONDS:g}")):
        taken = [figures.percentile(window.freed_to_bound, share) for window in windows]
        name = f"F15.p{share * 100:.0f}"
        figures.show(
            figures.plain(name, f"quota freed to waiting pod bound, {what}", "s", taken, goal)
        )
    for variant, name in ((NONE, "F15.created"), (STOCK, "F15.created.stock")):
        if variant in runs:
            taken = [
                figures.percentile(run.churn.window.created_to_bound, 0.99) for run in runs[variant]
            ]
            text = f"p99 of pod created to bound, {variant}, {what}"
            figures.show(figures.plain(name, text, "s", taken))
    above = [float(run.excesses) for run in runs[QUOTAS]]
    text = f"times that pods with a node used more than their quota, {what}"
    figures.show(figures.plain("F15.excesses", text, "1", above, "goal 0"))
