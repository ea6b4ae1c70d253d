"""How nodes lend: the colocation strategy of the configuration, as far as placing looks at it."""

import dataclasses
from collections.abc import Mapping
from typing import Any, Final

from api import names
from api.koordinator.settings import configuration, layers
from api.kubernetes import selectors
from domain.cluster_settings import documents, value_limits
from domain.lending import colocation
from extender.state import bounds, records

_DEFAULT: Final[Mapping[str, Any]] = configuration.DEFAULT_COLOCATION.wire()


@dataclasses.dataclass(frozen=True, slots=True)
class LendingPolicy:
    """How one node lends; no rule: what the node's status publishes is what may be lent."""

    cpu: colocation.Rule | None = None
    memory: colocation.Rule | None = None

    def rule(self, resource: str) -> colocation.Rule | None:
        """Return the rule for a native resource."""
        return self.cpu if resource == names.CPU else self.memory


PUBLISHED = LendingPolicy()


@dataclasses.dataclass(frozen=True, slots=True)
class LendingRules:
    """The cluster's strategy for lending and its exceptions, in the order they are tried."""

    strategy: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    exceptions: tuple[Mapping[str, Any], ...] = ()

    def policy(self, node: records.NodeRecord) -> LendingPolicy:
        """Return the policy of a node: the first exception that matches, then its annotation."""
        if not self.strategy.get("enable"):
            # Switched off for the cluster, no exception switches it on.
            return PUBLISHED
        exception = next((rule for rule in self.exceptions if _applies(rule, node)), {})
        merged = layers.merge(self.strategy, exception)
        if exception and value_limits.flaw(merged) is not None:
            merged = dict(self.strategy)
        merged = layers.merge(merged, bounds.annotated(node.strategy))
        if merged.get("enable") is not True:
            return PUBLISHED
        return LendingPolicy(
            _rule(merged, colocation.cpu_policy, "cpuCalculatePolicy", "batchCPUThresholdPercent"),
            _rule(
                merged,
                colocation.memory_policy,
                "memoryCalculatePolicy",
                "batchMemoryThresholdPercent",
            ),
        )


def read(text: str) -> LendingRules:
    """Read the colocation strategy of the configuration; ValueError says what is wrong.

    What is refused here is refused by the publisher of what nodes lend, so that both go on by
    what was said before.
    """
    document = documents.parse(configuration.COLOCATION, text or "{}")
    strategy = layers.merge(_DEFAULT, document.cluster or {})
    flaw = value_limits.flaw(strategy)
    if flaw is not None:
        raise documents.Unreadable(flaw, limits=True)
    exceptions = tuple(
        {**entry.values, "nodeSelector": entry.selector.wire()}
        for entry in document.entries
        if entry.selector is not None
    )
    return LendingRules(strategy, exceptions)


def _rule(merged: Mapping[str, Any], policy: Any, key: str, cap: str) -> colocation.Rule | None:
    if policy(str(merged.get(key, ""))) is not colocation.Policy.OVERCOMMIT_RATIO:
        return None
    percent, bound = merged.get("overcommitPercent", 0), merged.get(cap)
    return colocation.Rule(
        policy=colocation.Policy.OVERCOMMIT_RATIO,
        cap_percent=bound if isinstance(bound, int) else None,
        overcommit_percent=percent if isinstance(percent, int) else 0,
    )


def _applies(rule: Mapping[str, Any], node: records.NodeRecord) -> bool:
    return selectors.matches(rule.get("nodeSelector"), node.labels)
