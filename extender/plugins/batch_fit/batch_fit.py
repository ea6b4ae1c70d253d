"""Let batch work onto a node only as far as the node may lend."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from api.wire import quantity
from domain import short_memo, wording
from domain.lending import colocation
from extender.framework import verdicts, views
from extender.plugins.batch_fit import node_sums

NAME = "BatchFit"

CPU = verdicts.Status("node may not lend that much cpu to batch work")
MEMORY = verdicts.Status("node may not lend that much memory to batch work")
STATUSES = (CPU, MEMORY)

_LENT = node_sums.LENT


class BatchFit:
    """Compares a batch pod with what is lendable now, less what batch pods hold already.

    Where the strategy lends a share of what is not requested, the share is computed on the live
    state; elsewhere the capacity that the node's status publishes is what counts. The summary
    holds what may still be lent of cpu and of memory.
    """

    name = NAME
    columns = len(_LENT)
    expires = False

    def __init__(self) -> None:
        self._sums = node_sums.NodeSums()

    def node(self, info: views.NodeInfo) -> tuple[tuple[int, ...], None]:
        """Return what may still be lent."""
        sums = self._sums.of(info.node.name, info.pods)
        if info.policy.cpu is None and info.policy.memory is None:
            published = _published(info.node.allocatable)
            return (published[0] - sums[1], published[1] - sums[3]), None
        return tuple([balance.left for balance in _balances(info, sums)]), None

    def start(self) -> None:
        """Keep nothing of the cluster as a whole."""

    def cluster(self, old: None, delta: views.Delta) -> None:
        """Keep nothing of the cluster as a whole."""

    def pre_filter(self, pod: views.PodInfo, view: views.View) -> views.Pairs | None:
        """Return what a batch pod asks for; others are of no concern."""
        del view
        return pod.requirements.lent or None

    def filter(
        self, prepared: views.Pairs, view: views.View, rows: verdicts.Rows, now: float
    ) -> verdicts.Verdict:
        """Refuse nodes that may not lend what a batch pod asks for."""
        del now
        asked = dict(prepared)
        if rows.size == 1:
            code = _lacking(asked, view.figures[NAME][:, rows.item()].tolist())
            return verdicts.Verdict(np.array((code,), dtype=np.int16), STATUSES)
        left = view.gathered(NAME, rows)
        codes = np.zeros(rows.size, dtype=np.int16)
        for index, (native, _) in reversed(tuple(enumerate(_LENT))):
            if asked.get(native):
                codes[left[index] < asked[native]] = index + 1
        return verdicts.Verdict(codes, STATUSES)

    def passes_all(self, prepared: views.Pairs, view: views.View, now: float) -> bool:
        """Whether every node may lend what a batch pod asks for."""
        del now
        lowest = view.lowest(NAME)
        return lowest is not None and not _lacking(dict(prepared), lowest)

    def shortage(
        self, prepared: views.Pairs, view: views.View, rows: verdicts.Rows, now: float
    ) -> verdicts.Shares:
        """Say what share of what is asked may not be lent on each node."""
        del now
        left = view.gathered(NAME, rows)
        worst = np.zeros(rows.size)
        asked = dict(prepared)
        for index, (native, _) in enumerate(_LENT):
            if asked.get(native):
                lacking = (asked[native] - left[index]) / asked[native]
                np.maximum(worst, lacking, out=worst)
        return worst

    def diagnose(
        self, prepared: views.Pairs, view: views.View, row: int, now: float
    ) -> verdicts.Diagnosis:
        """Show the sum behind the verdict, in cores and bytes, and what would make it enough."""
        del now
        facts = view.node(row)
        asked = dict(prepared)
        for (native, _), balance in zip(
            _LENT, _balances(facts, node_sums.summed(facts.pods)), strict=True
        ):
            wanted = asked.get(native, 0)
            if wanted > balance.left:
                return _diagnosis(facts.node.name, native, wanted, balance)
        return verdicts.Diagnosis("")

    def inspect(self, facts: views.NodeInfo) -> dict[str, Any]:
        """Return what may be lent of each resource, what is, and where that comes from."""
        balances = _balances(facts, node_sums.summed(facts.pods))
        pairs = zip(_LENT, balances, strict=True)
        return {native: _shown(balance) for (native, _), balance in pairs}

    def reserve(
        self,
        pod: views.PodInfo,
        prepared: views.Pairs,
        view: views.View,
        row: int,
        grants: Mapping[str, msgspec.Struct],
    ) -> verdicts.Grant | verdicts.Status:
        """Grant what the pod borrows; the pod's own requests keep it counted."""
        del pod, grants
        for index, (native, _) in enumerate(_LENT):
            if dict(prepared).get(native, 0) > int(view.figures[NAME][index, row]):
                return STATUSES[index]
        lent = {native: quantity.text(native, value) for native, value in prepared}
        return verdicts.Grant(figures=lent)

    def could_help(self, prepared: views.Pairs | None, delta: views.Delta) -> bool:
        """Look again at pods that left, at nodes, and at what they lend."""
        del prepared
        match delta:
            case views.NodeDelta() | views.LendingDelta():
                return True
            case views.ClaimDelta():
                return delta.before is not None
            case _:
                return False


def _lacking(asked: Mapping[str, int], left: Sequence[int]) -> int:
    """Judge one node with plain integers: 1 + the index of what it may not lend, 0 if nothing."""
    lacking = (at for at, (native, _) in enumerate(_LENT) if left[at] < asked.get(native, 0))
    return next((at + 1 for at in lacking if asked.get(_LENT[at][0])), 0)


class _Balance(msgspec.Struct, frozen=True, gc=False):
    """What one resource of a node may lend, has lent, and where that comes from."""

    lendable: int
    lent: int
    total: int
    firm: int
    lending: colocation.Lending | None
    """None: what the node's status publishes."""

    @property
    def left(self) -> int:
        """What may still be lent; negative where the node has lent too much."""
        return self.lendable - self.lent


def _shown(balance: _Balance) -> dict[str, Any]:
    shown = {"lendable": balance.lendable, "lent": balance.lent, "left": balance.left}
    if balance.lending is None:
        return shown | {"from": "what the node's status publishes"}
    return shown | {
        "from": "the colocation strategy",
        "allocatable": balance.total,
        "requestedFirmly": balance.firm,
        "percent": balance.lending.percent,
    }


@short_memo.remembered(1024)
def _published(allocatable: views.Pairs) -> tuple[int, ...]:
    """Return what a node's status publishes of each resource, found once for nodes alike."""
    return tuple([node_sums.amount(allocatable, batch) for _, batch in _LENT])


def _balances(facts: views.NodeInfo, sums: node_sums.Sums) -> list[_Balance]:
    """Return the balance of each resource, in their order."""
    allocatable = dict(facts.node.allocatable)
    found = []
    for at, (native, batch) in enumerate(_LENT):
        firm, lent = sums[2 * at : 2 * at + 2]
        total, rule = allocatable.get(native, 0), facts.policy.rule(native)
        if rule is None:
            found.append(_Balance(allocatable.get(batch, 0), lent, total, firm, None))
            continue
        holding = colocation.Holding(
            capacity=dict(facts.node.capacity).get(native, total),
            allocatable=total,
            reserved=0,
            system=0,
            requested=0,
            used=0,
            peak=0,
            firm=firm,
        )
        lending = colocation.lend(rule, holding)
        found.append(_Balance(lending.value, lent, total, firm, lending))
    return found


def _diagnosis(node: str, native: str, wanted: int, balance: _Balance) -> verdicts.Diagnosis:
    left = max(balance.left, 0)
    figures = (
        f"asks {wording.amount(native, wanted)}, {wording.amount(native, left)} may be lent: "
        f"{_sum(native, balance)}"
    )
    more = wording.named(native, wanted - balance.left)
    helps = [f"{more} given back by batch pods of {node}"]
    if left:
        helps.append(f"a pod that asks {wording.named(native, left)} or less")
    lending = balance.lending
    if lending is None:
        helps.append(f"less use by services on {node}, so that the manager publishes more")
    elif lending.cap is not None:
        helps.append("a higher batch threshold in the colocation strategy")
    else:
        helps.append(f"fewer requests by services on {node}, or a higher overcommitPercent")
    return verdicts.Diagnosis(figures, tuple(helps))


def _sum(native: str, balance: _Balance) -> str:
    lent = f" - {wording.amount(native, balance.lent)} lent"
    lending = balance.lending
    if lending is None:
        return f"{wording.amount(native, balance.lendable)} published{lent}"
    if lending.cap is not None:
        return f"{wording.amount(native, lending.cap)} at most{lent}"
    unrequested = (
        f"({wording.amount(native, balance.total)} - {wording.amount(native, balance.firm)})"
    )
    return f"{unrequested} * {lending.percent} %{lent}"
