"""The story of an ElasticQuota: what it may use and why, what it lends and to whom."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from api import names
from api.wire import quantity
from cli.explain import stories
from cli.quota import cluster as clusters
from cli.quota import table
from domain import wording
from domain.quota import model
from domain.quota.tree import standing as standings

_MOST_PODS: Final = 5
_MOST_HOLDERS: Final = 10
_MOST_CHILDREN: Final = 20


def told(cluster: clusters.Cluster, name: str) -> stories.Story:
    """Return the story of a quota that the forest knows."""
    standing = standings.standings(cluster.forest)
    mine = standing[name]
    tell = stories.guarded
    chapters = (
        tell("figures", _figures, cluster, name, mine),
        tell("lending", _lending, cluster, name, standing),
        tell("the sum behind what it may use", _derivation, cluster, name),
        tell("waiting", _waiting, cluster, name),
        tell("conflicts and doubts", _doubts, cluster, name),
    )
    return stories.Story(
        subject=f"quota {name}",
        verdict=_verdict(name, mine),
        chapters=tuple(chapter for chapter in chapters if chapter.sentences),
        helps=tuple(_helps(name, mine, standing)),
    )


def _verdict(name: str, mine: standings.Standing) -> str:
    keys = [key for key in table.resources_of(mine) if key != model.PODS]
    parts = [
        _of(key, mine.used.get(key, 0), mine.entitled[key]) for key in keys if key in mine.entitled
    ]
    waits = [_named(key, mine.waiting[key]) for key in keys if mine.waiting.get(key)]
    verdict = f"Quota {name} uses {_listed(parts)}" if parts else f"Quota {name} has no limit"
    return f"{verdict}; pods that ask for {_listed(waits)} wait." if waits else f"{verdict}."


def _of(key: str, used: int, entitled: int) -> str:
    if entitled >= table.UNLIMITED:
        return f"{_named(key, used)} without a limit"
    return f"{_amount(key, used)} of {_named(key, entitled)}"


def _figures(cluster: clusters.Cluster, name: str, mine: standings.Standing) -> stories.Chapter:
    sentences = []
    for key in table.resources_of(mine):
        entitled = mine.entitled.get(key)
        text = (
            f"{key}: uses {_amount(key, mine.used.get(key, 0))}, "
            f"is guaranteed {_amount(key, mine.guaranteed.get(key, 0))}, "
            f"{_limited(key, entitled, mine.cap[key])}"
        )
        for word, amounts in (("borrows", mine.borrowed), ("lends", mine.lent)):
            text += f"; {word} {_amount(key, amounts[key])}" if amounts.get(key) else ""
        waits = mine.waiting.get(key)
        text += f"; {_amount(key, waits)} wait" if waits else ""
        sentences.append(f"{text}.")
    sentences += _shape(cluster, name)
    figures = {word: quantity.texts(getattr(mine, word)) for word in table.FIGURES}
    return stories.Chapter("figures", tuple(sentences), figures)


def _limited(key: str, entitled: int | None, cap: int) -> str:
    """Say what the quota may use now, and at most."""
    if entitled is None or entitled >= table.UNLIMITED:
        now = "is not limited now"
    else:
        now = f"may use {_amount(key, entitled)} now"
    return f"{now}, never more than {_amount(key, cap)}" if cap < table.UNLIMITED else now


def _shape(cluster: clusters.Cluster, name: str) -> Iterator[str]:
    """Yield where it stands in its tree, and how it was written."""
    forest, quota = cluster.forest, cluster.forest.quota(name)
    if quota is None:
        yield "No object states it: pods without a quota of their own count here."
        return
    path = forest.path(name)
    yield (
        f"It is {quota.resource.api_version} {quota.key}, priority {quota.priority}, below "
        f"{path[1] if len(path) > 1 else 'the root of its tree'}."
    )
    tree = forest.tree(name)
    if tree:
        yield f"Its tree {tree} has a total of its own: {_listed(_amounts(forest.total(tree)))}."
    children = forest.children(name)
    if children:
        more = ", …" if len(children) > _MOST_CHILDREN else ""
        yield f"It shares with its children: {', '.join(children[:_MOST_CHILDREN])}{more}."
    if not quota.lends:
        yield "It does not lend: its minimum is kept free for it."
    if not forest.rules.runtime:
        yield "Sharing is off (enableRuntimeQuota: false): it may use its cap."


# -- who holds what it lends -----------------------------------------------------------------


def _lending(
    cluster: clusters.Cluster, name: str, standing: Mapping[str, standings.Standing]
) -> stories.Chapter:
    mine = standing[name]
    sentences = []
    for holder, amounts in sorted(mine.holders.items())[:_MOST_HOLDERS]:
        held = _listed(_amounts(amounts))
        sentences.append(f"{holder} uses {held} of its idle minimum{_by_pods(cluster, holder)}.")
    if (more := len(mine.holders) - _MOST_HOLDERS) > 0:
        others = wording.count(more, "more quota uses", "more quotas use")
        sentences.append(f"{others} parts of it.")
    for lender, other in sorted(standing.items()):
        if name in other.holders:
            sentences.append(
                f"It uses {_listed(_amounts(other.holders[name]))} that {lender} lends."
            )
    figures = {
        "lentTo": {holder: quantity.texts(held) for holder, held in sorted(mine.holders.items())}
    }
    return stories.Chapter("lending", tuple(sentences), figures)


def _by_pods(cluster: clusters.Cluster, holder: str) -> str:
    """Name the pods of a borrower that would give back first: least priority, then youngest."""
    placed = [pod for pod in cluster.of_quota(holder) if pod.node and pod.use.preemptible]
    placed.sort(key=lambda pod: (pod.priority, -(pod.started_at or pod.created_at), pod.key))
    if not placed:
        return ""
    named = ", ".join(pod.key for pod in placed[:_MOST_PODS])
    more = f" and {len(placed) - _MOST_PODS} more" if len(placed) > _MOST_PODS else ""
    return f"; its pods, the first to give back first: {named}{more}"


# -- how the runtime comes about -------------------------------------------------------------


def _derivation(cluster: clusters.Cluster, name: str) -> stories.Chapter:
    steps = cluster.forest.derivation(name)
    sentences = [line for step in steps for line in _step(step)]
    figures = {"steps": [_step_figures(step) for step in steps]}
    return stories.Chapter("the sum behind what it may use", tuple(sentences), figures)


def _step(step: model.Step) -> Iterator[str]:
    key = step.resource

    def amount(value: int) -> str:
        return _amount(key, value)

    whose = "the root" if step.parent == names.ROOT_QUOTA else step.parent
    yield (
        f"{key}: {whose} shares out {amount(step.total)}; the minimums of all children are "
        f"{amount(step.minimums)} together."
    )
    if step.scaled_minimum != step.minimum:
        yield (
            f"  That is more than there is, so the minimum of {step.quota} counts as "
            f"{amount(step.scaled_minimum)} of {amount(step.minimum)}."
        )
    kept = min(step.request, step.guaranteed) if step.lends else step.guaranteed
    why = "lends the rest of its minimum" if step.lends and not step.joined else "its minimum"
    if step.joined:
        why = "its minimum, and wants more"
    yield f"  {step.quota} asks for {amount(step.request)} and keeps {amount(kept)}: {why}."
    if step.joined:
        yield f"  {amount(max(0, step.remaining))} remain after everybody's first part."
    for number, one in enumerate(step.rounds, 1):
        back = f", of which it returns {amount(one.returned)}" if one.returned else ""
        yield (
            f"  Round {number}, priority {one.priority}: {amount(one.remaining)} are split by "
            f"weight; its {amount(step.weight)} of {amount(one.weights)} give {amount(one.given)}"
            f"{back}."
        )
    yield f"  So its share of {key} is {amount(step.runtime)}."


def _step_figures(step: model.Step) -> dict[str, Any]:
    key = step.resource
    words = {
        "total": step.total, "minimum": step.minimum, "minimums": step.minimums,
        "scaledMinimum": step.scaled_minimum, "request": step.request, "runtime": step.runtime,
    }  # fmt: skip
    return {
        "quota": step.quota,
        "parent": step.parent,
        "resource": key,
        "rounds": [dict(one._asdict()) for one in step.rounds],
        **{word: quantity.text(key, value) for word, value in words.items()},
    }


# -- who waits, and what is wrong ------------------------------------------------------------


def _waiting(cluster: clusters.Cluster, name: str) -> stories.Chapter:
    waiting = [pod for pod in cluster.of_quota(name) if not pod.node]
    waiting.sort(key=lambda pod: (-pod.priority, pod.created_at, pod.uid))
    sentences = []
    for place, pod in enumerate(waiting[:_MOST_PODS], 1):
        quota = cluster.quota_of(pod)
        short = cluster.forest.shortage(quota, pod.use.requests, preemptible=pod.use.preemptible)
        why = short.text() if short is not None else "its quota has room"
        sentences.append(f"{place} of {len(waiting)}: {pod.key} (priority {pod.priority}): {why}.")
    if more := len(waiting[_MOST_PODS:]):
        sentences.append(f"{wording.count(more, 'more waits', 'more wait')} behind them.")
    return stories.Chapter("waiting", tuple(sentences), {"pods": len(waiting)})


def _doubts(cluster: clusters.Cluster, name: str) -> stories.Chapter:
    quota = cluster.forest.quota(name)
    about = [text for text in cluster.forest.conflicts() if quota and _mentions(text, name)]
    unreadable = [
        f"annotation {key} cannot be read and counts as absent"
        for key in (quota.unreadable if quota else ())
    ]
    figures = cluster.forest.figures(name)
    over = [
        f"it uses {_amount(key, used)} of {key}, more than its cap {_amount(key, figures.cap[key])}"
        for key, used in (figures.used.items() if figures else ())
        if figures and used > figures.cap[key]
    ]
    said = [*about, *unreadable, *over, *cluster.notes]
    return stories.Chapter("conflicts and doubts", tuple(stories.ended(text) for text in said))


def _mentions(text: str, name: str) -> bool:
    words = text.replace("/", " ").replace(",", " ").replace(";", " ").replace(":", " ").split()
    return name in words


def _helps(
    name: str,
    mine: standings.Standing,
    standing: Mapping[str, standings.Standing],
) -> Iterator[str]:
    """Yield what would let waiting pods of this quota run, each on its own."""
    for key in table.resources_of(mine):
        if not mine.waiting.get(key) or key not in mine.entitled:
            continue
        wanted = mine.used.get(key, 0) + mine.waiting[key]
        if wanted > mine.cap[key]:
            yield (
                f"a larger max (and hard) of {name}: all its pods together ask for "
                f"{_named(key, wanted)}, its cap is {_amount(key, mine.cap[key])}"
            )
        elif wanted > mine.entitled[key]:
            yield (
                f"a larger min of {name}: {_amount(key, mine.guaranteed.get(key, 0))} of {key} "
                f"are guaranteed, its pods ask for {_amount(key, wanted)}"
            )
        holders = [
            other for other, one in standing.items() if one.borrowed.get(key) and other != name
        ]
        if holders and mine.used.get(key, 0) < mine.guaranteed.get(key, 0):
            yield f"borrowed {key} given back by {_listed(sorted(holders)[:3])}"


# -- words -----------------------------------------------------------------------------------


def _amount(key: str, value: int) -> str:
    return wording.amount(key, value)


def _named(key: str, value: int) -> str:
    return wording.named(key, value)


def _amounts(amounts: Mapping[str, int]) -> list[str]:
    return [_named(key, value) for key, value in sorted(amounts.items())]


def _listed(parts: Sequence[str]) -> str:
    return ", ".join(parts) if parts else "nothing"
