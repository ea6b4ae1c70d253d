"""The results as a table and as a plot, beside what was published."""

from collections.abc import Mapping, Sequence
from typing import Final

from benchmarks.openb import replay, trace

POLICIES: Final = ("FGD", "BestFit", "DotProd", "GpuPacking", "GpuClustering", "Random")
"""Published ones, the best first."""
BEST: Final = "FGD"
CLOSE: Final = 0.5
"""Points that a workload may lack of the best published policy."""
_COLUMN: Final = 14
_LEFT, _TOP, _WIDTH, _ROW = 110, 40, 640, 26
_LOWEST: Final = 76.0


def table(means: Mapping[str, float]) -> str:
    """Return the percentage of GPUs that is allocated, by workload and policy."""
    head = ["workload", "here", *POLICIES, f"to {BEST}"]
    lines = ["".join(one.ljust(_COLUMN) for one in head)]
    for workload, mean in sorted(means.items()):
        published = trace.published(workload)
        others = [f"{published[policy]:.2f}" for policy in POLICIES]
        row = [workload, f"{mean:.2f}", *others, f"{mean - published[BEST]:+.2f}"]
        lines.append("".join(one.ljust(_COLUMN) for one in row))
    return "\n".join(lines)


def verdict(means: Mapping[str, float]) -> tuple[int, list[str]]:
    """Return on how many workloads the best published policy is reached, and which are short."""
    gaps = {one: mean - trace.published(one)[BEST] for one, mean in means.items()}
    return sum(gap >= 0 for gap in gaps.values()), [
        one for one, gap in sorted(gaps.items()) if gap < -CLOSE
    ]


def plot(results: Sequence[replay.Result]) -> str:
    """Return an SVG: a row per workload, a circle for us, ticks for what was published."""
    means = replay.means(results)
    height = _TOP + _ROW * (len(means) + 1)
    width = _LEFT + _WIDTH + 30
    size = f'width="{width}" height="{height}" font-family="sans-serif" font-size="12"'
    title = f"GPUs allocated at 130 % demand, in percent; circle: here; thick tick: {BEST}"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size}>',
        f'<text x="10" y="20">{title}; thin ticks: other published policies</text>',
    ]
    for mark in range(80, 101, 5):
        parts.append(_line(mark, _TOP, height - _ROW, 1, "#ddd"))
        parts.append(f'<text x="{_at(mark) - 8:.1f}" y="{height - 8}">{mark}</text>')
    for number, (workload, mean) in enumerate(sorted(means.items())):
        middle = _TOP + _ROW * number + _ROW // 2
        parts.append(f'<text x="10" y="{middle + 4}">{workload}</text>')
        for policy, value in trace.published(workload).items():
            tick = 4 if policy == BEST else 1
            parts.append(_line(value, middle - 8, middle + 8, tick, "#888"))
        parts.append(f'<circle cx="{_at(mean):.1f}" cy="{middle}" r="5" fill="#06c"/>')
    return "\n".join((*parts, "</svg>", ""))


def _at(percent: float) -> float:
    return _LEFT + (max(percent, _LOWEST) - _LOWEST) / (100 - _LOWEST) * _WIDTH


def _line(percent: float, top: int, bottom: int, width: int, colour: str) -> str:
    at = f"{_at(percent):.1f}"
    return (
        f'<line x1="{at}" x2="{at}" y1="{top}" y2="{bottom}" stroke="{colour}" '
        f'stroke-width="{width}"/>'
    )
