"""Why nodes refuse a pod at this moment: grouped by reason, with the nearest miss of each group.

Made from what the plug-ins return, for explanations; no answer to a scheduler depends on it.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from extender.framework import pipeline, views

MOST_NODES = 200
"""Nodes that a group names; it counts all of them."""

Rows = npt.NDArray[np.intp]


@dataclasses.dataclass(frozen=True, slots=True)
class Group:
    """The nodes that refuse for one reason."""

    plugin: str
    reason: str
    preemption_helps: bool
    """Whether the scheduler's own preemption could help."""
    count: int
    nodes: tuple[str, ...]
    """Their names in order, the first of very many."""
    nearest: str
    """The node that lacks least."""
    shortage: float
    """Share of what the pod needs that the nearest node lacks."""
    figures: str
    """The figures of the nearest node."""
    helps: tuple[str, ...]
    """What would let the pod onto the nearest node, each on its own."""

    def sentence(self) -> str:
        """Return it for people."""
        text = f"{self.count} {self.reason}"
        if not self.figures:
            return text
        return f"{text} (nearest miss {self.nearest}: {self.figures})"

    def document(self) -> dict[str, Any]:
        """Return it as a document."""
        return {
            "plugin": self.plugin,
            "reason": self.reason,
            "preemptionMightHelp": self.preemption_helps,
            "count": self.count,
            "nodes": list(self.nodes),
            "nearest": {
                "node": self.nearest,
                "lacks": round(self.shortage, 4),
                "figures": self.figures,
                "wouldHelp": list(self.helps),
            },
        }


@dataclasses.dataclass(frozen=True, slots=True)
class Account:
    """How the nodes that were asked about judge a pod."""

    asked: int
    passed: int
    groups: tuple[Group, ...]
    """The nearest miss first."""
    besides: tuple[str, ...] = ()
    """What else refuses the pod whichever node it takes, behind what is reported of each node."""

    @property
    def reasons(self) -> frozenset[tuple[str, str]]:
        """Who refuses and why, without figures: what has to change to be news."""
        return frozenset((group.plugin, group.reason) for group in self.groups)

    @property
    def helps(self) -> tuple[str, ...]:
        """What would help at the nearest miss of all."""
        return self.groups[0].helps if self.groups else ()

    def sentence(self) -> str:
        """Return it for people: groups, the nearest miss of each, and what would help."""
        head = f"{self.passed}/{self.asked} nodes may take it"
        if not self.groups:
            return head
        text = f"{head}: {', '.join(group.sentence() for group in self.groups)}."
        if self.besides:
            text = f"{text} Besides, {'; '.join(self.besides)}."
        return f"{text} What would help: {'; or '.join(self.helps)}." if self.helps else text


def account(
    plugins: pipeline.Pipeline,
    request: views.PodInfo,
    view: views.View,
    rows: Rows,
    now: float,
) -> Account:
    """Judge a pod on some rows and group what refuses it."""
    present = rows[(rows < view.known.size)]
    present = present[view.known[present]]
    asked = plugins.cycle(request, view)
    outcome = plugins.filter(asked, view, present, now)
    codes = outcome.codes
    groups = [
        _group(plugins, asked, view, _Found(refusal, present[codes == code]), now)
        for code, refusal in enumerate(outcome.refusals, start=1)
        if np.any(codes == code)
    ]
    groups.sort(key=lambda group: (group.shortage, group.plugin, group.reason))
    passed = int(np.count_nonzero(codes == 0))
    told = {group.plugin for group in groups}
    besides = tuple(
        f"{name} refuses it: {one.figures}"
        for name, one in plugins.constraints(asked, view).items()
        if one.helps and name not in told
    )
    return Account(present.size, passed, tuple(groups), besides)


@dataclasses.dataclass(frozen=True, slots=True)
class _Found:
    refusal: pipeline.Refusal
    rows: Rows


def _group(
    plugins: pipeline.Pipeline,
    asked: pipeline.Cycle,
    view: views.View,
    found: _Found,
    now: float,
) -> Group:
    refusal, rows = found.refusal, found.rows
    shortage = plugins.shortage(asked, view, rows, refusal, now)
    place = int(shortage.argmin())
    row = int(rows[place])
    diagnosis = plugins.diagnose(asked, view, row, refusal, now)
    return Group(
        plugin=refusal.plugin,
        reason=refusal.status.reason,
        preemption_helps=refusal.status.resolvable,
        count=rows.size,
        nodes=_names(view.names, rows),
        nearest=view.names[row],
        shortage=float(shortage[place]),
        figures=diagnosis.figures,
        helps=diagnosis.helps,
    )


def _names(names: Sequence[str], rows: Rows) -> tuple[str, ...]:
    return tuple(sorted(names[row] for row in rows[:MOST_NODES].tolist()))
