"""Refuse pods that their quota has no room for, on every node and with the sum behind it."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np

from api import names
from domain.quota import model
from extender.framework import claim_index, protocols, verdicts, views
from extender.plugins.elastic_quota import reasons, summaries, tracker, uses, victims

NAME = tracker.NAME
Pods = protocols.Pods
_SYSTEM: Final = "kube-system"


class ElasticQuota:
    """PreFilter finds the quota of a pod, the filter compares it with what the quota may use.

    What is bound or assumed is what is used, so that a bind charges the quota in the same step in
    which it takes the node, and two binds at once never exceed a limit.
    """

    name = NAME
    page = NAME
    collection, item, namespaced = "quotas", "quota", False
    columns = 0
    pod_labels = uses.LABELS
    pod_annotations = ()
    kinds = (views.UNSCHEDULED_POD, views.ELASTIC_QUOTA)
    expires = False

    def __init__(
        self,
        rules: model.Rules,
        *,
        preempts_default: bool = False,
        namespace: str = names.NAMESPACE,
    ) -> None:
        """`preempts_default`: pods of the default quota preempt each other.

        Pods of `namespace`, in which Koord itself runs, and of kube-system count and are never
        refused: the cluster does not run without them.
        """
        self._rules = rules
        self._exempt = frozenset({_SYSTEM, namespace})
        self._preempts_default = preempts_default

    # -- what is known of the cluster ------------------------------------------------------

    def node(self, info: views.NodeInfo) -> tuple[tuple[int, ...], None]:
        """Keep nothing of a node: quota is of the cluster as a whole."""
        del info
        return (), None

    def start(self) -> tracker.QuotaState:
        """Return the state of an empty cluster."""
        return tracker.start(self._rules)

    def cluster(self, old: tracker.QuotaState, delta: views.Delta) -> tracker.QuotaState:
        """Return the state after a change."""
        return tracker.advanced(old, delta)

    def needs(self, value: tracker.QuotaState | None) -> bool:
        """Want to know pods without a node only once a quota bounds anybody."""
        return value is None or value.enforced

    # -- extension points ------------------------------------------------------------------

    def pre_filter(self, pod: views.PodInfo, view: views.View) -> tracker.Asked | None:
        """Find the quota in which a pod counts; None where nothing bounds it."""
        state = _state(view)
        if not state.enforced or pod.key.partition("/")[0] in self._exempt:
            return None
        return state.asked(pod)

    def filter(
        self, prepared: tracker.Asked, view: views.View, rows: verdicts.Rows, now: float
    ) -> verdicts.Verdict | None:
        """Refuse every node with the same sum while the quota has no room."""
        del now
        short = _state(view).shortage(prepared)
        if short is None:
            return None
        return verdicts.Verdict(np.ones(rows.size, dtype=np.int16), (reasons.status(short),))

    def shortage(
        self, prepared: tracker.Asked, view: views.View, rows: verdicts.Rows, now: float
    ) -> verdicts.Shares:
        """Say what share of its request the pod lacks, the same on every node."""
        del now
        short = _state(view).shortage(prepared)
        return np.full(rows.size, reasons.share(short) if short is not None else 0.0)

    def diagnose(
        self, prepared: tracker.Asked, view: views.View, row: int, now: float
    ) -> verdicts.Diagnosis:
        """Return the arithmetic of the refusal, the borrowers, and what would help."""
        del row, now
        return self.diagnose_pod(prepared, view)

    def diagnose_pod(self, prepared: tracker.Asked, view: views.View) -> verdicts.Diagnosis:
        """Return the same, or how much room there is where the quota lets the pod run."""
        state = _state(view)
        forest, short = state.seen_by(prepared), state.shortage(prepared)
        if short is None:
            return reasons.standing(forest, prepared)
        return reasons.diagnosis(forest, short)

    def could_help(self, prepared: tracker.Asked | None, delta: views.Delta) -> bool:
        """Look again at quota that is freed or lent again, at quotas and at what nodes offer."""
        match delta:
            case views.ClaimDelta(_, before, after):
                return before is not None and self._frees(prepared, before, after)
            case views.NodeDelta(_, was, becomes):
                return was is None or becomes is None or was.allocatable != becomes.allocatable
            case views.ObjectDelta(views.ELASTIC_QUOTA):
                return True
            case views.ObjectDelta(views.UNSCHEDULED_POD, _, gone, _):
                # What a pod no longer asks for, others may borrow.
                return gone is not None and self._rules.runtime
            case _:
                return False

    def _frees(
        self, prepared: tracker.Asked | None, before: views.Claim, after: views.Claim | None
    ) -> bool:
        """Whether a claim that ended or shrank may leave room for a pod."""
        requirements, namespace = before.pod.requirements, before.pod.namespace
        use = uses.waiting(requirements, namespace)
        if after is not None and use == uses.waiting(after.pod.requirements, after.pod.namespace):
            return before.node != after.node
        if prepared is None or self._rules.runtime or self._rules.check_parents:
            return True
        return use.quota in ("", prepared.quota) or prepared.quota == names.DEFAULT_QUOTA

    def line(self, pod: views.PodInfo, view: views.View) -> str:
        """Return the quota that bounds a pod."""
        state = _state(view)
        return state.bounding(pod) if state.enforced else ""

    def frees(self, delta: views.Delta) -> bool:
        """Whether quota is freed: a claim or a wish ended, a quota or what nodes offer changed."""
        return self.could_help(None, delta)

    # -- preemption ------------------------------------------------------------------------

    def group(self, claim: views.Claim) -> victims.Group:
        """Let the pods of a quota be found, wherever they are."""
        return victims.group(claim)

    def potential(
        self, pod: views.PodInfo, view: views.View, groups: claim_index.Groups
    ) -> Iterable[views.Claim]:
        """Name the pods of the same quota: what they leave is free wherever they were."""
        found = victims.potential(_state(view), pod, groups, default_quota=self._preempts_default)
        return (claim for claim in found if claim.pod.namespace not in self._exempt)

    def protects(
        self, pod: views.PodInfo, view: views.View, victim: views.Claim
    ) -> verdicts.Status | None:
        """Protect pods of other quotas, as far as these are entitled to what they use."""
        return victims.protects(_state(view), pod, victim)

    # -- for people ------------------------------------------------------------------------

    def listed(self, view: views.View, query: Mapping[str, str], pods: Pods) -> list[Any]:
        """Return all quotas; `tree` and `includePods=true` are understood."""
        wanted = pods if query.get("includePods") == "true" else None
        return summaries.listed(_state(view).forest, wanted, query.get("tree"))

    def named(
        self, name: str, view: views.View, query: Mapping[str, str], pods: Pods
    ) -> dict[str, Any] | None:
        """Return one quota; `includePods=true` is understood."""
        wanted = pods if query.get("includePods") == "true" else None
        return summaries.summary(_state(view).forest, name, wanted)

    def inspect(self, facts: views.NodeInfo) -> Mapping[str, object]:
        """Return how many pods of each quota label a node holds."""
        counts: dict[str, int] = {}
        for pod in facts.pods:
            label = uses.waiting(pod.requirements, pod.namespace).quota
            counts[label] = counts.get(label, 0) + 1
        return {"podsByQuotaLabel": dict(sorted(counts.items()))}


def _state(view: views.View) -> tracker.QuotaState:
    state = view.cluster[NAME]
    assert isinstance(state, tracker.QuotaState)
    return state
