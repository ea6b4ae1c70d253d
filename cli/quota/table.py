"""Quotas as rows: one per quota and resource, for people and for programs. Pure."""

import dataclasses
import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from api import names
from api.koordinator import quota as quotas
from api.wire import quantity
from cli.output import columns
from cli.quota import cluster as clusters
from domain.quota.tree import standing as standings

COLUMNS: Final = (
    *columns.left("NAMESPACE", "QUOTA", "GROUP", "PARENT"),
    *columns.more("TREE", "PRIORITY", "WAITING PODS"),
    *columns.left("RESOURCE"),
    *columns.right("USED", "ENTITLED", "GUARANTEED", "CAP", "BORROWED", "LENT", "WAITING"),
)
FIGURES: Final = ("used", "entitled", "guaranteed", "cap", "borrowed", "lent", "waiting")
_NONE: Final = "-"
UNLIMITED: Final = 1 << 60
"""An amount that no cluster has: the default quota may use everything."""
_BUILT_IN: Final = "(built in)"


@dataclasses.dataclass(frozen=True, slots=True)
class Row:
    """One ElasticQuota, or the default or system quota where no object states it."""

    name: str
    namespace: str
    api_version: str
    parent: str
    tree: str
    standing: standings.Standing | None
    """None for an object that does not count."""
    ignored: str = ""
    """Why it does not count."""
    priority: int = 0
    waiting_pods: int = 0

    @property
    def group(self) -> str:
        """Return the API group."""
        return self.api_version.partition("/")[0] or _BUILT_IN


def rows(cluster: clusters.Cluster) -> tuple[Row, ...]:
    """Return a row for every quota, in their trees, parents before children."""
    forest = cluster.forest
    found = standings.standings(forest)
    waiting = _waiting(cluster)
    made: list[Row] = []
    for name, standing in _ordered(cluster, found):
        quota = forest.quota(name)
        path = forest.path(name)
        row = Row(
            name=name,
            namespace=quota.namespace if quota else "",
            api_version=quota.resource.api_version if quota else "",
            parent=path[1] if len(path) > 1 else "",
            tree=forest.tree(name),
            standing=standing,
            priority=quota.priority if quota else 0,
            waiting_pods=waiting.get(name, 0),
        )
        if quota is not None or any(standing.used.values()) or any(standing.waiting.values()):
            made.append(row)
    made += [_ignored(quota) for quota in cluster.quotas.values() if not _counts(cluster, quota)]
    return tuple(made)


def _ordered(
    cluster: clusters.Cluster, found: Mapping[str, standings.Standing]
) -> Iterator[tuple[str, standings.Standing]]:
    """Yield quotas depth first, so that children stand below their parent."""

    def below(name: str) -> Iterator[str]:
        for child in cluster.forest.children(name):
            yield child
            yield from below(child)

    tops = below(names.ROOT_QUOTA)
    for name in dict.fromkeys((*tops, names.DEFAULT_QUOTA, names.SYSTEM_QUOTA)):
        if name in found:
            yield name, found[name]


def _counts(cluster: clusters.Cluster, quota: quotas.Quota) -> bool:
    known = cluster.forest.quota(quota.name)
    return known is not None and known.identity == quota.identity


def _ignored(quota: quotas.Quota) -> Row:
    why = f"another ElasticQuota is called {quota.name}, too, and is older"
    if quota.name == names.ROOT_QUOTA:
        why = "the root quota is the cluster itself"
    return Row(
        quota.name, quota.namespace, quota.resource.api_version, quota.parent, quota.tree, None, why
    )


def _waiting(cluster: clusters.Cluster) -> dict[str, int]:
    """Return how many pods have no node, by quota, counted in all ancestors as well."""
    found: dict[str, int] = {}
    for pod in cluster.pods.values():
        if pod.node:
            continue
        name = cluster.quota_of(pod)
        for each in cluster.forest.path(name) or (name,):
            found[each] = found.get(each, 0) + 1
    return found


def lines(shown: Sequence[Row], *, wide: bool = False) -> Iterator[str]:
    """Yield the table as lines, then what is not counted."""
    yield from columns.lines(COLUMNS, (line for row in shown for line in _cells(row)), wide=wide)
    for row in shown:
        if row.ignored:
            yield f"ignored: {row.api_version} {row.namespace}/{row.name}: {row.ignored}"


def _cells(row: Row) -> Iterator[tuple[str, ...]]:
    more = (row.tree or _NONE, str(row.priority), str(row.waiting_pods))
    head = (row.namespace or _NONE, row.name, row.group, row.parent or _NONE, *more)
    if row.standing is None:
        return
    keys = resources_of(row.standing)
    for key in keys:
        amounts = (getattr(row.standing, figure).get(key) for figure in FIGURES)
        yield (*head, key, *(written(key, amount) for amount in amounts))
    if not keys:
        yield (*head, _NONE, *(_NONE for _ in FIGURES))


def resources_of(standing: standings.Standing) -> tuple[str, ...]:
    """Return the resources that a quota bounds, cpu and memory first."""
    first = (names.CPU, names.MEMORY)
    return tuple(
        sorted(standing.cap, key=lambda key: (first.index(key) if key in first else 2, key))
    )


def written(key: str, amount: int | None) -> str:
    """Return an amount as people read it."""
    if amount is not None and amount >= UNLIMITED:
        return "unlimited"
    return _NONE if amount is None else quantity.text(key, amount)


def document(shown: Iterable[Row], notes: Sequence[str]) -> dict[str, Any]:
    """Return the rows as a document; amounts as Kubernetes quantities."""
    return {"items": [_item(row) for row in shown], "notes": list(notes)}


def _item(row: Row) -> dict[str, Any]:
    item: dict[str, Any] = {
        "name": row.name,
        "namespace": row.namespace,
        "apiVersion": row.api_version,
        "parent": row.parent,
        "tree": row.tree,
        "priority": row.priority,
        "waitingPods": row.waiting_pods,
    }
    if row.standing is None:
        return item | {"ignored": row.ignored}
    for figure in FIGURES:
        item[figure] = quantity.texts(getattr(row.standing, figure))
    item["lentTo"] = {
        holder: quantity.texts(amounts) for holder, amounts in sorted(row.standing.holders.items())
    }
    return item


def unknown(name: str, known: Sequence[str]) -> str:
    """Say that there is no such quota, and which names are near."""
    near = difflib.get_close_matches(name, sorted(set(known)), n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else "`koord get quota -A` lists all"
    return f"there is no ElasticQuota {name} here: {hint}"
