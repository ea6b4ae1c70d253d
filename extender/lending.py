"""How nodes lend: the colocation strategy of the configuration, as far as placing looks at it."""

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from api import base, configuration, meta, names, selectors
from domain import colocation
from extender import records


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
        merged = configuration.merge(self.strategy, exception)
        if _flaw(merged):
            merged = dict(self.strategy)
        merged = configuration.merge(merged, records.annotated(node.strategy))
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
    """Read the colocation strategy of the configuration; ValueError says what is wrong."""
    document = configuration.read_colocation(_selecting(text)).wire()
    exceptions = document.pop("nodeConfigs", ())
    flaw = _flaw(document)
    if flaw:
        raise ValueError(f"{configuration.COLOCATION}: {flaw}: must not be negative")
    return LendingRules(document, tuple(exceptions))


def _selecting(text: str) -> str:
    """Leave out exceptions whose selector cannot be read: they select nothing."""
    try:
        document = json.loads(text)
        exceptions = document["nodeConfigs"]
        document["nodeConfigs"] = [rule for rule in exceptions if _selects(rule)]
    except (ValueError, TypeError, LookupError, AttributeError):
        # Not the shape that has exceptions: whoever reads it next says what is wrong.
        return text
    return json.dumps(document)


def _selects(rule: Mapping[str, Any]) -> bool:
    try:
        base.validated(meta.LabelSelector, rule.get("nodeSelector") or {}, "nodeSelector")
    except base.ReadError:
        return False
    return True


def _rule(merged: Mapping[str, Any], policy: Any, key: str, cap: str) -> colocation.Rule | None:
    if policy(str(merged.get(key, ""))) is not colocation.Policy.OVERCOMMIT_RATIO:
        return None
    percent, bound = merged.get("overcommitPercent", 0), merged.get(cap)
    return colocation.Rule(
        policy=colocation.Policy.OVERCOMMIT_RATIO,
        cap_percent=bound if isinstance(bound, int) else None,
        overcommit_percent=percent if isinstance(percent, int) else 0,
    )


_NOT_NEGATIVE = ("overcommitPercent", "batchCPUThresholdPercent", "batchMemoryThresholdPercent")


def _flaw(merged: Mapping[str, Any]) -> str:
    return next((name for name in _NOT_NEGATIVE if (merged.get(name) or 0) < 0), "")


def _applies(rule: Mapping[str, Any], node: records.NodeRecord) -> bool:
    return selectors.matches(rule.get("nodeSelector"), node.labels)
