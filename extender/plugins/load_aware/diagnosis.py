"""Put into words how full a node would be with a pod on it."""

import functools
from collections.abc import Iterable, Mapping

from api import names
from domain import wording
from domain.usage import load
from extender.framework import verdicts


def shortfalls(
    node: str,
    percent: Mapping[str, int],
    places: Iterable[tuple[str, int, int, int]],
    amounts: load.Vector,
) -> verdicts.Diagnosis:
    """Say of every resource that the pod has no room for how much is used and what would help.

    `places` are resource, room under the threshold, usage and total; `amounts` what the pod is
    expected to use of each. Thresholds are in percent of the total.
    """
    clauses, helps = [], []
    for (resource, room, used, total), amount in zip(places, amounts, strict=True):
        if room >= amount:
            continue
        show = functools.partial(wording.amount, resource)
        named = functools.partial(wording.named, resource)
        clauses.append(
            f"{resource}: {show(used)} of {show(total)} is used or expected, "
            f"{show(amount)} more would pass {percent.get(resource, 0)} %"
        )
        helps.append(f"{named(amount - room)} less in use on {node}")
        if room > 0:
            helps.append(f"a pod that is expected to use {named(room)} or less")
    if helps:
        helps.append(f"a higher threshold ({names.ANNOTATION_USAGE_THRESHOLDS} on the node)")
    return verdicts.Diagnosis("; ".join(clauses), tuple(helps))
