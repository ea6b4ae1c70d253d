"""Why a pod waits for quota, in words: the sum, who uses what is lacking, and what would help."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from api import names
from domain import wording
from domain.quota import model
from domain.quota.tree import forest as forests
from extender.framework import verdicts
from extender.plugins.elastic_quota import tracker

INSUFFICIENT: Final = "Insufficient quotas"
NON_PREEMPTIBLE: Final = "Insufficient non-preemptible quotas"
PARENT: Final = "Insufficient quotas of a parent"
_REASONS: Final[Mapping[model.Kind, str]] = {
    model.Kind.LIMIT: INSUFFICIENT,
    model.Kind.NON_PREEMPTIBLE: NON_PREEMPTIBLE,
    model.Kind.PARENT: PARENT,
}
_MOST_RESOURCES: Final = 4
_MOST_BORROWERS: Final = 3


def status(short: model.Shortage) -> verdicts.Status:
    """Return what refuses a pod everywhere: the scheduler's own preemption frees no quota."""
    return verdicts.Status(_REASONS[short.kind], message=short.text())


def share(short: model.Shortage) -> float:
    """Return what share of its request a pod lacks, in the resource that lacks most."""
    return max(_lacking(short, name) / max(_asked(short, name), 1) for name in short.exceeded)


def diagnosis(forest: forests.Forest, short: model.Shortage) -> verdicts.Diagnosis:
    """Return the arithmetic behind a shortage, the borrowers, and what would help."""
    chosen = short.exceeded[:_MOST_RESOURCES]
    clauses = [_sum(forest, short, name) for name in chosen]
    left = len(short.exceeded) - len(chosen)
    if left:
        clauses.append(f"and {wording.count(left, 'more resource', 'more resources')}")
    borrowers = _borrowers(forest, short.quota, chosen)
    if borrowers:
        clauses.append(f"above their minimum are {', '.join(borrowers)}")
    return verdicts.Diagnosis("; ".join(clauses), tuple(_helps(forest, short)))


def standing(forest: forests.Forest, asked: tracker.Asked) -> verdicts.Diagnosis:
    """Return the sum of a pod that its quota lets run."""
    found = forest.figures(asked.quota)
    if found is None:
        return verdicts.Diagnosis("")
    clauses = [
        f"{wording.amount(name, found.used.get(name, 0))} of "
        f"{wording.named(name, found.limit[name])} is used"
        for name, _ in asked.use.requests
        if name in found.limit
    ]
    text = f"quota {asked.quota} lets it run"
    return verdicts.Diagnosis(f"{text}: {', '.join(clauses)}" if clauses else text)


def _asked(short: model.Shortage, name: str) -> int:
    return short.requested.get(name, 0)


def _lacking(short: model.Shortage, name: str) -> int:
    return short.used.get(name, 0) + _asked(short, name) - short.limit.get(name, 0)


def _sum(forest: forests.Forest, short: model.Shortage, name: str) -> str:
    """Return the sum in one resource, such as `cpu: 9 used + 2 asked is 1 more than 10`."""
    text = (
        f"{name}: {wording.amount(name, short.used.get(name, 0))} used and "
        f"{wording.amount(name, _asked(short, name))} asked are "
        f"{wording.amount(name, _lacking(short, name))} more than the "
        f"{wording.amount(name, short.limit.get(name, 0))} that {short.quota} "
    )
    found = forest.figures(short.quota)
    if short.kind is model.Kind.NON_PREEMPTIBLE or found is None:
        return f"{text}guarantees (min)"
    limit, cap = short.limit.get(name, 0), found.cap.get(name)
    minimum = found.scaled_minimum.get(name, 0)
    if limit == cap:
        return f"{text}may use at most (max)"
    if limit > minimum:
        return (
            f"{text}may use now: {wording.amount(name, minimum)} guaranteed, "
            f"{wording.amount(name, limit - minimum)} borrowed"
        )
    return f"{text}may use now"


def _borrowers(forest: forests.Forest, quota: str, resources: Sequence[str]) -> list[str]:
    """Name the siblings of a quota that use most above their minimum in what it lacks."""
    path = forest.path(quota)
    parent = path[1] if len(path) > 1 else names.ROOT_QUOTA
    found: list[tuple[int, str]] = []
    for name in resources[:1]:
        for sibling in forest.children(parent):
            figures = forest.figures(sibling) if sibling != quota else None
            if figures is None:
                continue
            above = figures.used.get(name, 0) - figures.scaled_minimum.get(name, 0)
            if above > 0:
                found.append((-above, f"{sibling} by {wording.amount(name, above)} {name}"))
    return [text for _, text in sorted(found)[:_MOST_BORROWERS]]


def _helps(forest: forests.Forest, short: model.Shortage) -> Iterator[str]:
    for name in itertools.islice(short.exceeded, _MOST_RESOURCES):
        lacking = wording.named(name, _lacking(short, name))
        if short.kind is model.Kind.NON_PREEMPTIBLE:
            yield f"{lacking} of non-preemptible pods given back in quota {short.quota}"
            yield f"a larger min of {name} in quota {short.quota}"
            continue
        yield f"{lacking} given back by pods of quota {short.quota}"
        found = forest.figures(short.quota)
        if found is not None and short.limit.get(name, 0) == found.cap.get(name):
            yield f"a larger max of {name} in quota {short.quota}"
        else:
            yield f"a larger min of {name} in quota {short.quota}, or others that ask for less"
    if short.kind is model.Kind.NON_PREEMPTIBLE:
        yield f"a pod that may be preempted (without the label {names.LABEL_QUOTA_PREEMPTIBLE})"
