"""Let batch work onto a node only as far as the node may lend."""

import numpy as np

from api import names, quantity
from api.qos import Band
from domain import colocation
from extender import framework, records

NAME = "BatchFit"

CPU = framework.Reason("node may not lend that much cpu to batch work")
MEMORY = framework.Reason("node may not lend that much memory to batch work")
REASONS = (CPU, MEMORY)

_LENT = ((names.CPU, names.BATCH_CPU), (names.MEMORY, names.BATCH_MEMORY))


class BatchFit:
    """Compares a batch pod with what is lendable now, less what is lent already.

    Where the strategy lends a share of what is not requested, the share is computed on the live
    state; elsewhere the capacity that the node's status publishes is what counts. The summary
    holds what may still be lent of cpu and of memory.
    """

    name = NAME
    columns = len(_LENT)

    def summarize(self, facts: framework.NodeFacts) -> tuple[int, ...]:
        """Return what may still be lent."""
        return tuple(
            lendable - lent for lendable, lent, _, _ in (_balance(facts, *pair) for pair in _LENT)
        )

    def filter(
        self, request: framework.Request, view: framework.View, now: float
    ) -> framework.Verdict | None:
        """Refuse nodes that may not lend what a batch pod asks for."""
        del now
        asked = dict(request.demand.lent)
        if not asked:
            return None
        summary = view.summaries[NAME]
        codes = np.zeros(summary.shape[1], dtype=np.int16)
        for index, (native, _) in reversed(tuple(enumerate(_LENT))):
            if asked.get(native):
                codes[summary[index] < asked[native]] = index + 1
        return framework.Verdict(codes, REASONS)

    def figures(
        self, request: framework.Request, view: framework.View, row: int, now: float
    ) -> str:
        """Show the sum behind the verdict, in cores and bytes."""
        del now
        facts = view.facts(row)
        asked = dict(request.demand.lent)
        for native, batch in _LENT:
            lendable, lent, total, firm = _balance(facts, native, batch)
            if asked.get(native, 0) <= lendable - lent:
                continue
            percent = facts.policy.percent(native)
            left = (
                f"asks {_show(native, asked[native])}, {_show(native, lendable - lent)} may be lent"
            )
            if percent is None:
                return f"{left}: {_show(native, lendable)} published - {_show(native, lent)} lent"
            return (
                f"{left}: ({_show(native, total)} - {_show(native, firm)}) * {percent} %"
                f" - {_show(native, lent)} lent"
            )
        return ""

    def reserve(
        self, request: framework.Request, view: framework.View, row: int, now: float
    ) -> framework.Allocation | framework.Reason | None:
        """Grant what the pod borrows; the pod's own record keeps it counted."""
        del now
        asked = dict(request.demand.lent)
        if not asked:
            return None
        for index, (native, _) in enumerate(_LENT):
            if asked.get(native, 0) > int(view.summaries[NAME][index, row]):
                return REASONS[index]
        granted = {native: quantity.text(native, value) for native, value in asked.items()}
        return framework.Allocation(NAME, granted)


def _balance(facts: framework.NodeFacts, native: str, batch: str) -> tuple[int, int, int, int]:
    """Return lendable, lent, total and firmly requested amounts of one resource."""
    allocatable = dict(facts.node.allocatable)
    total = allocatable.get(native, 0)
    lent = firm = 0
    for pod in facts.pods:
        if pod.demand.band is Band.BATCH:
            lent += _amount(pod.demand.lent, native)
        else:
            firm += _amount(pod.demand.requests, native)
    percent = facts.policy.percent(native)
    if percent is None:
        return allocatable.get(batch, 0), lent, total, firm
    return colocation.lendable(total, firm, percent), lent, total, firm


def _amount(amounts: records.Pairs, name: str) -> int:
    return next((value for resource, value in amounts if resource == name), 0)


def _show(native: str, value: int) -> str:
    """Cores as a plain decimal number, bytes as a quantity."""
    return f"{value / 1000:g}" if native == names.CPU else quantity.text(native, value)
