"""The part of a pod's story that is about preemption: who leaves for it, or would."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from cli.explain import stories
from domain import wording

Raw = Mapping[str, Any]
_MOST: Final = 5


def told(page: Raw | None, quota_says: bool) -> stories.Chapter:
    """Tell what the extender's page says of victims; nothing where it names none.

    `quota_says`: the chapter about the quota names them already.
    """
    found = (page or {}).get("preemption") or {}
    sentences = [*_under_way(found.get("underWay") or {})]
    if not sentences and not quota_says:
        sentences = [*_planned(found)]
    return stories.Chapter("preemption", tuple(sentences), dict(found))


def _under_way(found: Raw) -> Iterator[str]:
    if not found:
        return
    node, until = found["node"], found["until"]
    if found["victimsHaveLeft"]:
        yield f"Its victims have left {node}, where its place is kept until {until}."
        return
    pods = wording.count(found["victims"], "pod", "pods")
    yield f"It waits for {pods} to leave. Its place on {node} is kept until {until}."


def _planned(found: Raw) -> Iterator[str]:
    if found.get("planned"):
        pairs = zip(found["victims"], found["priorities"], strict=True)
        evicted = _listed([f"{key} (priority {priority})" for key, priority in pairs])
        awaited = _listed(found["leaving"])
        deeds = [
            *([f"evict {evicted}"] if evicted else ()),
            *([f"wait for {awaited} to end"] if awaited else ()),
        ]
        if not deeds:
            return
        guarded = found["violatedBudgets"]
        though = ", though disruption budgets refuse some of that now" if guarded else ""
        yield f"The extender would {' and '.join(deeds)} for it, for node {found['node']}{though}."
    elif found.get("sentence"):
        yield stories.ended(f"The extender would evict no pod for it: {found['sentence']}")


def _listed(keys: Sequence[str]) -> str:
    more = f" and {len(keys) - _MOST} more" if len(keys) > _MOST else ""
    return ", ".join(keys[:_MOST]) + more
