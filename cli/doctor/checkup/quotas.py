"""Elastic quotas: contradictions, minimums that cannot be kept, gates that no controller opens."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from api import names
from api.koordinator import quota as quotas
from api.wire import quantity
from cli import reading
from cli.doctor.checkup import facts, findings
from cli.doctor.checkup.findings import Severity, Trap
from domain.pods import resources as amounts
from domain.quota.tree import forest as forests

CONFLICT = Trap(
    "quota.conflict", Severity.WARNING,
    "ElasticQuotas contradict each other: two claim one name or namespace, or a parent is missing",
    "rename, rebind or delete the younger object; until then the older one counts",
)  # fmt: skip
UNREADABLE = Trap(
    "quota.unreadable", Severity.WARNING,
    "An ElasticQuota cannot be read: it counts as if it were not there",
    "correct the field that is named; `kubectl apply --dry-run=server` says more",
)  # fmt: skip
UNKNOWN = Trap(
    "quota.unknown", Severity.WARNING,
    "Pods name a quota that does not exist: they count in the default quota",
    "create the ElasticQuota, or correct the label quota.scheduling.koordinator.sh/name",
)  # fmt: skip
PARENT = Trap(
    "quota.parent-min", Severity.WARNING,
    "The minimums of the children are more than the minimum of their parent: they are not sure of "
    "them while others of the cluster ask",
    "raise min of the parent, or lower those of its children",
)  # fmt: skip
TOTAL = Trap(
    "quota.total-min", Severity.WARNING,
    "All minimums together are more than the cluster has: each is scaled down",
    "lower minimums, or add nodes; `koord get quota -A` shows what is guaranteed now",
)  # fmt: skip
NOBODY_OPENS = Trap(
    "quota.nobody-opens", Severity.ERROR,
    "Pods wait behind the gate koord.sh/quota and no controller opens it",
    "start the manager: look at the pods of Deployment koord-manager; once it leads it opens the "
    "gate of each pod whose quota has room, and where switch quota-gates is off, every gate",
)  # fmt: skip
IN_TREE = Trap(
    "quota.resource-quota", Severity.INFO,
    "A ResourceQuota counts in a namespace that is bound to an ElasticQuota as well: a pod has to "
    "fit into both, and only the ElasticQuota lends and borrows",
    "nothing, if both are meant; else remove one of the two",
)  # fmt: skip

TRAPS = (CONFLICT, UNREADABLE, UNKNOWN, PARENT, TOTAL, NOBODY_OPENS, IN_TREE)

_MOST: Final = 20


def run(known: facts.Facts) -> Iterator[findings.Finding]:
    """Look at the quotas of all three groups, at the pods that name them, and at gates."""
    written, unreadable = _read(facts.given(known.elastic_quotas))
    for which, why in unreadable[:_MOST]:
        yield UNREADABLE.found(f"{which} cannot be read: {why}", which)
    forest = forests.Forest.empty()
    for quota in written:
        forest = forest.with_quota(None, quota)
    for node in facts.given(known.nodes):
        offered = reading.either({}, amounts.amounts, (node.get("status") or {}).get("allocatable"))
        forest = forest.with_node(None, tuple(sorted(offered.items())))
    for sentence in forest.conflicts()[:_MOST]:
        yield CONFLICT.found(sentence)
    yield from _unknown(forest, facts.given(known.pods))
    yield from _minimums(forest)
    yield from _gates(known)
    yield from _in_tree(forest, facts.given(known.quotas))


def _read(
    objects: Sequence[facts.Raw],
) -> tuple[list[quotas.Quota], list[tuple[str, str]]]:
    found: list[quotas.Quota] = []
    unreadable: list[tuple[str, str]] = []
    for raw in objects:
        try:
            found.append(quotas.read_elastic_quota(raw))
        except reading.UNREADABLE as error:
            group = str(raw.get("apiVersion", "")).partition("/")[0]
            unreadable.append((f"elasticquotas.{group} {facts.key(raw)}", str(error)))
    return found, unreadable


def _unknown(forest: forests.Forest, pods: Sequence[facts.Pod]) -> Iterator[findings.Finding]:
    naming: dict[str, list[str]] = {}
    for pod in pods:
        label = pod.labels.get(names.LABEL_QUOTA_NAME, "")
        known = not label or label in names.RESERVED_QUOTAS or forest.quota(label) is not None
        if not known and not pod.ended:
            naming.setdefault(label, []).append(pod.key)
    for label, listed in sorted(naming.items())[:_MOST]:
        yield UNKNOWN.found(
            f"{findings.some(listed)} name quota {label}, which does not exist", listed[0]
        )


def _minimums(forest: forests.Forest) -> Iterator[findings.Finding]:
    for name in forest.names():
        quota = forest.quota(name)
        children = forest.children(name)
        if quota is None or not children:
            continue
        for key, least in _sums(forest, children).items():
            if least > quota.minimum.get(key, 0):
                yield PARENT.found(
                    f"the children of {name} are to have at least {quantity.text(key, least)} of "
                    f"{key} together, {name} itself {_text(key, quota.minimum)}",
                    quota.key,
                )
    tops: dict[str, list[str]] = {}
    for name in forest.children(names.ROOT_QUOTA):
        tops.setdefault(forest.tree(name), []).append(name)
    for tree, listed in sorted(tops.items()):
        total = forest.total(tree)
        for key, least in _sums(forest, listed).items():
            if least > max(0, total.get(key, 0)):
                where = f"tree {tree}" if tree else "the cluster"
                yield TOTAL.found(
                    f"quotas are to have at least {quantity.text(key, least)} of {key} together, "
                    f"{where} has {_text(key, total)}"
                )


def _sums(forest: forests.Forest, listed: Sequence[str]) -> Mapping[str, int]:
    found: dict[str, int] = {}
    for name in listed:
        quota = forest.quota(name)
        for key, amount in (quota.minimum if quota is not None else {}).items():
            found[key] = found.get(key, 0) + amount
    return dict(sorted(found.items()))


def _text(key: str, amounts_: Mapping[str, int]) -> str:
    return quantity.text(key, max(0, amounts_.get(key, 0)))


def _gates(known: facts.Facts) -> Iterator[findings.Finding]:
    waiting = [pod.key for pod in facts.given(known.pods) if names.GATE_QUOTA in pod.gates]
    if not waiting:
        return
    # A manager that leads opens gates in any mode: where it does not enforce, all at once.
    if why := facts.leaderless(known):
        yield NOBODY_OPENS.found(f"{findings.some(waiting)} wait for quota, and {why}", waiting[0])


def _in_tree(forest: forests.Forest, in_tree: Sequence[facts.Raw]) -> Iterator[findings.Finding]:
    counted = ("cpu", "memory", "requests.cpu", "requests.memory", "pods")
    both: dict[str, list[str]] = {}
    for raw in in_tree:
        hard = (raw.get("spec") or {}).get("hard") or {}
        namespace = str((raw.get("metadata") or {}).get("namespace", ""))
        name = forest.name_of("", namespace)
        if forest.quota(name) is not None and any(key in hard for key in counted):
            both.setdefault(name, []).append(facts.key(raw))
    for name, listed in sorted(both.items()):
        yield IN_TREE.found(
            f"ResourceQuota {findings.some(listed)} counts beside ElasticQuota {name}", listed[0]
        )


CHECK = findings.Check("quota", "quotas agree with each other, and gates open", TRAPS, run)
