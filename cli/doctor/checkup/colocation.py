"""What turning cpu and memory into batch resources breaks around the pods it is done to."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from api import names
from api.koordinator import colocation
from api.kubernetes import selectors
from api.wire import base
from cli.doctor.checkup import facts, findings
from cli.doctor.checkup.findings import Severity, Trap
from domain import wording
from domain.pods import profiles

COUNTED: Final = frozenset(
    f"{prefix}{name}"
    for prefix in ("", "requests.", "limits.")
    for name in (names.CPU, names.MEMORY)
)
"""Names in a ResourceQuota that every pod must then state."""
CORE: Final = (names.CPU, names.MEMORY)
WEBHOOK: Final = "koord-webhook"
UNREGISTERED: Final[Mapping[str, str]] = {}
"""What selects namespaces while nothing is registered: everything."""
RATIO: Final = ("maxLimitRequestRatio",)
DEFAULTS: Final = ("default", "defaultRequest", "min", "max")
BOUNDS: Final = (*DEFAULTS, *RATIO)

QUOTA = Trap(
    "colocation.resource-quota", Severity.ERROR,
    "A ResourceQuota counts cpu or memory in a namespace whose pods a profile turns into batch "
    "work: such pods state neither any more, and are refused",
    "give the quota the scope NotBestEffort; a second one may count pods with the scope BestEffort",
)  # fmt: skip
LIMIT_DEFAULTS = Trap(
    "colocation.limit-range-default", Severity.ERROR,
    "A LimitRange sets default cpu or memory for containers, by itself or as a consequence of min "
    "and max, in a namespace whose pods a profile turns into batch work: the API server adds them "
    "again after the change, and the pod asks for both",
    "remove default, defaultRequest, min and max of cpu and memory for containers there",
)  # fmt: skip
LIMIT_BOUNDS = Trap(
    "colocation.limit-range-bounds", Severity.ERROR,
    "A LimitRange bounds cpu or memory of pods, or their ratio, in a namespace whose pods a "
    "profile turns into batch work: such pods state neither any more, and are refused",
    "remove min, max and maxLimitRequestRatio of cpu and memory there",
)  # fmt: skip
LENT_QUOTA = Trap(
    "colocation.quota-without-effect", Severity.WARNING,
    "A ResourceQuota counts batch or mid resources: Kubernetes accepts names under kubernetes.io "
    "in a quota and does not count them",
    "count pods with the scope BestEffort instead",
)  # fmt: skip
LENT_LIMITS = Trap(
    "colocation.limit-range-lent", Severity.ERROR,
    "A LimitRange names batch or mid resources: for containers they become defaults of every pod "
    "of the namespace, online ones too; for pods those without them are refused",
    "remove batch and mid resources from the LimitRange",
)  # fmt: skip
HPA = Trap(
    "colocation.hpa", Severity.WARNING,
    "A HorizontalPodAutoscaler scales batch pods by utilisation: without a cpu or memory request "
    "there is no utilisation, and it does nothing",
    "scale by AverageValue, or by a metric of the work itself",
)  # fmt: skip
VPA = Trap(
    "colocation.vpa", Severity.WARNING,
    "A VerticalPodAutoscaler sets requests of batch pods: it writes cpu and memory beside the "
    "batch resources",
    "set updateMode: Off, or take these pods out of colocation",
)  # fmt: skip
SLIPPED = Trap(
    "colocation.slipped-through", Severity.WARNING,
    "Pods lack what a profile that selects them gives: they were created while the webhook did not "
    "answer, or before the profile",
    "delete them, so that their owner creates them anew; resources cannot be changed afterwards",
)  # fmt: skip

TRAPS = (QUOTA, LENT_QUOTA, LIMIT_DEFAULTS, LIMIT_BOUNDS, LENT_LIMITS, HPA, VPA, SLIPPED)


def run(known: facts.Facts) -> Iterator[findings.Finding]:
    """Look for what counts cpu and memory where there will be none."""
    seen = admitted(known)
    selected = namespaces(facts.given(known.profiles), seen)
    for quota in facts.given(known.quotas):
        yield from _quota(quota, selected)
    for limits in facts.given(known.limit_ranges):
        yield from _limit_range(limits, selected)
    owners = batch_owners(facts.given(known.pods))
    yield from _autoscalers(known.horizontal, HPA, owners)
    yield from _autoscalers(known.vertical, VPA, owners)
    yield from _slipped(known, seen)


def rewrites(profile: facts.Raw) -> bool:
    """Whether a profile makes pods ask for lent resources instead of cpu and memory."""
    spec = profile.get("spec") or {}
    if names.ANNOTATION_SKIP_UPDATE_RESOURCES in facts.meta(profile, "annotations"):
        return False
    lent = {names.PRIORITY_CLASS_BATCH, names.PRIORITY_CLASS_MID}
    return spec.get("priorityClassName") in lent or spec.get("qosClass") == "BE"


def admitted(known: facts.Facts) -> Mapping[str, Mapping[str, str]]:
    """Return the namespaces, with their labels, whose pods the mutating webhook is asked about."""
    hooks = [
        hook
        for configuration in facts.given(known.webhooks)
        if facts.name(configuration) == WEBHOOK and "Mutating" in str(configuration.get("kind"))
        for hook in facts.stated(configuration, "webhooks")
    ]
    wanted = [hook.get("namespaceSelector") or {} for hook in hooks] or [UNREGISTERED]
    exempt = {"kube-system", known.namespace}
    return {
        facts.name(one): facts.meta(one, "labels")
        for one in facts.given(known.namespaces)
        if facts.name(one) not in exempt
        and any(selectors.matches(each, facts.meta(one, "labels")) for each in wanted)
    }


def namespaces(
    written: Sequence[facts.Raw], seen: Mapping[str, Mapping[str, str]]
) -> Mapping[str, str]:
    """Return each namespace that a profile selects, with the profile's name."""
    selected: dict[str, str] = {}
    for profile in written:
        selector = (profile.get("spec") or {}).get("namespaceSelector")
        for name, labels in seen.items() if rewrites(profile) else ():
            if not selector or selectors.matches(selector, labels):
                selected.setdefault(name, facts.name(profile))
    return selected


def _quota(quota: facts.Raw, selected: Mapping[str, str]) -> Iterator[findings.Finding]:
    namespace = str((quota.get("metadata") or {}).get("namespace"))
    spec = quota.get("spec") or {}
    key = facts.key(quota)
    lent = sorted(
        n for n in spec.get("hard") or {} if n.rpartition("requests.")[2] in facts.BORROWED
    )
    if lent:
        yield LENT_QUOTA.found(f"ResourceQuota {key} counts {', '.join(lent)} in vain", key)
    counted = sorted(COUNTED & set(spec.get("hard") or {}))
    # These scopes never match a pod that states neither cpu nor memory, or name the others.
    if not counted or namespace not in selected or "NotBestEffort" in (spec.get("scopes") or ()):
        return
    if not _covers(spec.get("scopeSelector") or {}):
        return
    yield QUOTA.found(
        f"ResourceQuota {key} counts {', '.join(counted)}; profile {selected[namespace]} selects "
        "pods of this namespace",
        key,
    )


def _covers(selector: facts.Raw) -> bool:
    """Whether a quota's scope selector may match batch pods."""
    for term in facts.stated(selector, "matchExpressions"):
        if term.get("scopeName") == "NotBestEffort":
            return False
        if term.get("scopeName") == "PriorityClass":
            values, operator = set(facts.stated(term, "values")), term.get("operator")
            listed = bool(values & {names.PRIORITY_CLASS_BATCH, names.PRIORITY_CLASS_MID})
            if (operator == "In" and not listed) or (operator == "NotIn" and listed):
                return False
    return True


def _limit_range(limits: facts.Raw, selected: Mapping[str, str]) -> Iterator[findings.Finding]:
    key = facts.key(limits)
    namespace = str((limits.get("metadata") or {}).get("namespace"))
    items = [
        item
        for item in facts.stated(limits.get("spec") or {}, "limits")
        if item.get("type") in ("Container", "Pod")
    ]
    lent = [name for item in items for name in _named(item, BOUNDS, sorted(facts.BORROWED))]
    if lent:
        yield LENT_LIMITS.found(f"LimitRange {key} has {', '.join(lent)}", key)
    if namespace not in selected:
        return
    why = f"profile {selected[namespace]} selects pods of this namespace"
    for item in items:
        # For containers the API server makes defaults of bounds, for pods it has none.
        is_pod = item.get("type") == "Pod"
        defaults = [] if is_pod else _named(item, DEFAULTS, CORE)
        bounds = _named(item, BOUNDS if is_pod else RATIO, CORE)
        if defaults:
            yield LIMIT_DEFAULTS.found(f"LimitRange {key} has {', '.join(defaults)}; {why}", key)
        if bounds:
            yield LIMIT_BOUNDS.found(f"LimitRange {key} has {', '.join(bounds)}; {why}", key)


def _named(item: facts.Raw, parts: Sequence[str], wanted: Sequence[str]) -> list[str]:
    return [f"{part}.{name}" for part in parts for name in wanted if name in (item.get(part) or {})]


def batch_owners(pods: Sequence[facts.Pod]) -> frozenset[tuple[str, str, str]]:
    """Return namespace, kind and name of what owns batch pods."""
    owners = set()
    for pod in pods:
        kind, name = pod.owner
        if not pod.is_batch or not name:
            continue
        if kind == "ReplicaSet":
            kind, name = "Deployment", name.rpartition("-")[0]
        owners.add((pod.namespace, kind, name))
    return frozenset(owners)


def _autoscalers(
    answer: facts.Answer[Sequence[facts.Raw]], trap: Trap, owners: frozenset[tuple[str, str, str]]
) -> Iterator[findings.Finding]:
    if isinstance(answer, facts.Unknown):
        yield findings.could_not("colocation", answer)
        return
    for scaler in answer:
        spec = scaler.get("spec") or {}
        target = spec.get("scaleTargetRef") or spec.get("targetRef") or {}
        namespace = str((scaler.get("metadata") or {}).get("namespace"))
        owner = (namespace, str(target.get("kind")), str(target.get("name")))
        if owner in owners and (_by_utilization(spec) if trap is HPA else _updates(spec)):
            key = facts.key(scaler)
            named = f"{target.get('kind')} {target.get('name')}"
            yield trap.found(f"{scaler.get('kind')} {key} scales {named}, batch work", key)


def _by_utilization(spec: facts.Raw) -> bool:
    for metric in facts.stated(spec, "metrics"):
        source = metric.get("resource") or metric.get("containerResource") or {}
        kind = (source.get("target") or {}).get("type")
        if source.get("name") in CORE and kind == "Utilization":
            return True
    return False


def _updates(spec: facts.Raw) -> bool:
    return str((spec.get("updatePolicy") or {}).get("updateMode", "Auto")) != "Off"


def _slipped(
    known: facts.Facts, seen: Mapping[str, Mapping[str, str]]
) -> Iterator[findings.Finding]:
    written = []
    for raw in facts.given(known.profiles):
        try:
            written.append(colocation.read_profile(raw))
        except base.ReadError as error:
            unread = facts.Unknown(f"profile {facts.name(raw)}", str(error))
            yield findings.could_not("colocation", unread)
    slipped = []
    for pod in facts.given(known.pods):
        if pod.ended or pod.namespace not in seen:
            continue
        selecting = [p for p in written if profiles.matches(p, seen[pod.namespace], pod.labels)]
        if profiles.passed_by(selecting, pod.stored, rewrites=True):
            slipped.append(pod.key)
    if slipped:
        yield SLIPPED.found(
            f"{wording.count(len(slipped), 'pod was', 'pods were')} created past the profiles that "
            f"select {wording.form(len(slipped), 'it', 'them')}: {findings.some(slipped)}",
            slipped[0],
        )


CHECK = findings.Check(
    "colocation", "nothing counts cpu or memory where there is none left", TRAPS, run
)
