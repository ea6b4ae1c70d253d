"""PodGroups of both API groups, as far as they say what a gang needs. Pure.

What a status says several times a minute is left out: two equal values mean the same gang.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from api.koordinator import scheduling
from api.kubernetes import meta
from api.wire import durations
from domain.gangs import declaration, status

_LONGEST: Final = 16 << 10
"""Characters of an annotation that is kept; longer ones count as absent."""


class PodGroup(msgspec.Struct, frozen=True):
    """One PodGroup of scheduling.sigs.k8s.io, or of scheduling.k8s.io."""

    namespace: str
    name: str
    uid: str
    is_native: bool = False
    """Whether it is of scheduling.k8s.io, which pods name in spec.schedulingGroup."""
    min_member: int = 0
    """minMember, or minCount of a native one; 0: missing or unreadable."""
    timeout_seconds: int = 0
    """scheduleTimeoutSeconds; 0: the default holds."""
    is_gang: bool = True
    """False of a native one with another policy: its pods are placed one by one."""
    begun: bool = False
    """Whether its status counts members that have ended since the gang started, or restarted."""
    created: float = -1.0
    """creationTimestamp; negative: not known."""
    annotations: tuple[tuple[str, str], ...] = ()
    """Those that declare a gang, sorted."""

    @property
    def gang_id(self) -> str:
        """Return the id of its gang."""
        source = declaration.Source.NATIVE if self.is_native else declaration.Source.POD_GROUP
        return declaration.unknown(self.namespace, self.name, source).id

    def gang(self, defaults: declaration.Defaults) -> declaration.Gang:
        """Return the gang that it declares."""
        notes = dict(self.annotations)
        if not self.is_native:
            spec = scheduling.PodGroupSpec(
                min_member=self.min_member, schedule_timeout_seconds=self.timeout_seconds
            )
            return declaration.of_pod_group(self.namespace, self.name, notes, spec, defaults)
        # Without the gang policy kube-scheduler waits for no member, as a gang of one does.
        least = self.min_member if self.is_gang else 1
        policy = {"schedulingPolicy": {"gang": {"minCount": least}}}
        found = declaration.of_native(self.namespace, self.name, notes, policy, defaults)
        assert found is not None
        return found


def read(raw: Mapping[str, Any]) -> PodGroup:
    """Read a PodGroup of scheduling.sigs.k8s.io; a ReadError names the field that is wrong."""
    found = scheduling.read_pod_group(raw)
    return PodGroup(
        **_named(raw),
        min_member=max(found.spec.min_member, 0),
        timeout_seconds=max(found.spec.schedule_timeout_seconds or 0, 0),
        begun=has_begun(found.status),
    )


def has_begun(stated: scheduling.PodGroupStatus) -> bool:
    """Whether members have ended since the gang started, so that others are placed on their own.

    Members that failed before the gang was restarted are placed anew together with all others.
    Those that had succeeded are not: the others would wait for them in vain.
    """
    condition = meta.condition(stated.conditions, status.RESTARTED)
    restarted = None if condition is None else condition.last_transition_time
    if restarted is not None and stated.succeeded:
        return True
    if stated.phase not in status.STARTED or not stated.succeeded + stated.failed:
        return False
    start = stated.schedule_start_time
    return restarted is None or not status.precedes(stated.phase, start, restarted)


def read_native(raw: Mapping[str, Any]) -> PodGroup:
    """Read a PodGroup of scheduling.k8s.io; what cannot be read counts as a missing minimum."""
    spec = raw.get("spec")
    policy = spec.get("schedulingPolicy") if isinstance(spec, Mapping) else None
    rule = policy.get("gang") if isinstance(policy, Mapping) else None
    least = rule.get("minCount") if isinstance(rule, Mapping) else None
    is_number = isinstance(least, int) and not isinstance(least, bool)
    return PodGroup(
        **_named(raw),
        is_native=True,
        min_member=max(least, 0) if is_number and isinstance(least, int) else 0,
        is_gang=isinstance(rule, Mapping),
    )


def _named(raw: Mapping[str, Any]) -> dict[str, Any]:
    metadata = raw["metadata"]
    notes = metadata.get("annotations") or {}
    texts = [(name, notes.get(name)) for name in declaration.ANNOTATIONS]
    created = metadata.get("creationTimestamp")
    return {
        "namespace": metadata["namespace"],
        "name": metadata["name"],
        "uid": metadata.get("uid", ""),
        "created": durations.timestamp(created) if created else -1.0,
        "annotations": tuple(
            sorted((name, text) for name, text in texts if text and len(text) <= _LONGEST)
        ),
    }
