"""A gang as a pod or a PodGroup declares it: labels, annotations, PodGroups of two API groups.

What is written here is a tenant's: every text is bounded, and what cannot be read counts as the
documented default, never as an error.
"""

import enum
import functools
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from api import names
from api.koordinator import scheduling
from api.kubernetes import core
from domain.gangs import option_texts

LABELS: Final = (
    names.LABEL_POD_GROUP,
    names.LABEL_POD_GROUP_OLD,
    names.LABEL_POD_GROUP_MIN_AVAILABLE,
)
"""Labels of a pod that declare a gang."""
ANNOTATIONS: Final = (
    names.ANNOTATION_GANG_NAME,
    names.ANNOTATION_GANG_MIN_AVAILABLE,
    names.ANNOTATION_GANG_TOTAL,
    names.ANNOTATION_GANG_MODE,
    names.ANNOTATION_GANG_MATCH_POLICY,
    names.ANNOTATION_POD_GROUP_MATCH_POLICY,
    names.ANNOTATION_GANG_WAITING_TIME,
    names.ANNOTATION_GANG_GROUPS,
    names.ANNOTATION_GANG_NETWORK_TOPOLOGY,
    names.ANNOTATION_GANG_REPAIR,
)
"""Annotations of a pod or a PodGroup that declare a gang."""
NATIVE: Final = "@scheduling.k8s.io"
"""Ends the id of a gang that a PodGroup of scheduling.k8s.io declares; no name contains @."""
NO_NAME: Final = "?"
"""Stands for a name that no object can have; such a gang is never initialised."""
_KEPT_TEXT: Final = 2 << 10
"""Characters of all annotations together up to which what they declare is kept."""


class Source(enum.Enum):
    """Where a pod says which gang it is a member of."""

    ANNOTATIONS = "annotations"
    """gang.scheduling.koordinator.sh/name."""
    LABELS = "labels"
    """pod-group.scheduling.sigs.k8s.io/name, the deprecated labels."""
    POD_GROUP = "PodGroup"
    """pod-group.scheduling.sigs.k8s.io: a PodGroup of scheduling.sigs.k8s.io has the settings."""
    NATIVE = "native PodGroup"
    """spec.schedulingGroup: a PodGroup of scheduling.k8s.io has the settings."""

    @property
    def needs_object(self) -> bool:
        """Whether only a PodGroup has the settings of the gang."""
        return self in (Source.POD_GROUP, Source.NATIVE)


Mode = option_texts.Mode
MatchPolicy = option_texts.MatchPolicy
Repair = option_texts.Repair
Topology = option_texts.Topology
GatherRule = option_texts.GatherRule


class Defaults(msgspec.Struct, frozen=True):
    """CoschedulingArgs: what holds where a gang does not say."""

    wait_seconds: float = 600.0
    match_policy: MatchPolicy = MatchPolicy.ONCE_SATISFIED


class Gang(msgspec.Struct, frozen=True, cache_hash=True):
    """The settings of one gang."""

    id: str
    """namespace/name, and for a native PodGroup `NATIVE` after it."""
    namespace: str
    name: str
    source: Source
    min_member: int = 0
    """Members that must be able to run together."""
    total: int = 0
    """Members that the job has; never below the minimum."""
    mode: Mode = Mode.STRICT
    match_policy: MatchPolicy = MatchPolicy.ONCE_SATISFIED
    wait_seconds: float = 600.0
    """How long a member waits at Permit for the others."""
    group: tuple[str, ...] = ()
    """Ids of the gangs that start together, as written, sorted; at least its own."""
    initialised: bool = True
    """False: its minimum is missing or unreadable, or its PodGroup does not exist."""
    topology: Topology | None = None
    repair: Repair = Repair.NONE

    @property
    def group_id(self) -> str:
        """Return the id of its gang group: ids of gangs, sorted and joined by commas."""
        return ",".join(self.group)


def membership(
    namespace: str,
    labels: Mapping[str, str],
    annotations: Mapping[str, str],
    scheduling_group: core.SchedulingGroup | None = None,
) -> tuple[str, Source] | None:
    """Return the id of the gang that a pod is a member of and who says so, None without one."""
    found = _named(labels, annotations, scheduling_group)
    return (_id(namespace, *found), found[1]) if found is not None else None


def of_pod(
    namespace: str,
    labels: Mapping[str, str],
    annotations: Mapping[str, str],
    defaults: Defaults,
    scheduling_group: core.SchedulingGroup | None = None,
) -> Gang | None:
    """Return the gang of a pod with the settings that the pod itself declares, None without one.

    Where the source needs a PodGroup, the settings of that object count instead of these.
    """
    found = _named(labels, annotations, scheduling_group)
    if found is None:
        return None
    name, source = found
    if source is Source.NATIVE:
        return unknown(namespace, name, source)
    texts = tuple(option_texts.text(annotations, key) for key in ANNOTATIONS)
    least = option_texts.text(labels, names.LABEL_POD_GROUP_MIN_AVAILABLE)
    read = _kept_of_values if sum(map(len, texts)) <= _KEPT_TEXT else _of_values
    return read(namespace, found, least, texts, defaults)


def of_pod_group(
    namespace: str,
    name: str,
    annotations: Mapping[str, str],
    spec: scheduling.PodGroupSpec,
    defaults: Defaults,
) -> Gang:
    """Return the gang that a PodGroup of scheduling.sigs.k8s.io declares."""
    timeout = spec.schedule_timeout_seconds or 0
    return _with_options(
        unknown(namespace, name, Source.POD_GROUP),
        spec.min_member,
        {key: option_texts.text(annotations, key) for key in ANNOTATIONS},
        float(timeout) if timeout > 0 else 0.0,
        defaults,
    )


def of_native(
    namespace: str,
    name: str,
    annotations: Mapping[str, str],
    spec: Mapping[str, Any],
    defaults: Defaults,
) -> Gang | None:
    """Return the gang that a PodGroup of scheduling.k8s.io declares, None without that policy.

    Kubernetes counts members that run towards minCount, which is the default here as well.
    """
    policy = spec.get("schedulingPolicy")
    rule = policy.get("gang") if isinstance(policy, Mapping) else None
    if not isinstance(rule, Mapping):
        return None
    least = rule.get("minCount")
    notes = {key: option_texts.text(annotations, key) for key in ANNOTATIONS}
    notes[names.ANNOTATION_GANG_GROUPS] = ""
    counted = msgspec.structs.replace(defaults, match_policy=MatchPolicy.WAITING_AND_RUNNING)
    gang = unknown(namespace, name, Source.NATIVE)
    if not isinstance(least, int) or isinstance(least, bool) or least < 1:
        return gang
    return _with_options(gang, least, notes, option_texts.seconds(notes), counted)


def unknown(namespace: str, name: str, source: Source) -> Gang:
    """Return a gang of which nothing is known but its name; it is not initialised."""
    found = _id(namespace, name, source)
    return Gang(found, namespace, name, source, group=(found,), initialised=False)


def listed(gang: Gang) -> tuple[str, ...]:
    """Return the gangs that start together with this one, itself among them, each once, sorted.

    Gangs belong to one group where this is the same for all of them: so a gang that lists others
    which do not list it waits for them, and they do not wait for it.
    """
    return gang.group if gang.group == (gang.id,) else tuple(sorted({*gang.group, gang.id}))


def _named(
    labels: Mapping[str, str],
    annotations: Mapping[str, str],
    scheduling_group: core.SchedulingGroup | None,
) -> tuple[str, Source] | None:
    if name := labels.get(names.LABEL_POD_GROUP):
        found = name, Source.POD_GROUP
    elif name := labels.get(names.LABEL_POD_GROUP_OLD):
        found = name, Source.LABELS
    elif name := annotations.get(names.ANNOTATION_GANG_NAME):
        found = name, Source.ANNOTATIONS
    elif scheduling_group is not None and scheduling_group.pod_group_name:
        found = scheduling_group.pod_group_name, Source.NATIVE
    else:
        return None
    return found if option_texts.is_name(found[0]) else (NO_NAME, found[1])


def _id(namespace: str, name: str, source: Source) -> str:
    return f"{namespace}/{name}{NATIVE if source is Source.NATIVE else ''}"


def _of_values(
    namespace: str,
    named: tuple[str, Source],
    least_label: str,
    texts: tuple[str, ...],
    defaults: Defaults,
) -> Gang:
    notes = dict(zip(ANNOTATIONS, texts, strict=True))
    gang = unknown(namespace, *named)
    least = option_texts.int32(least_label or notes[names.ANNOTATION_GANG_MIN_AVAILABLE])
    if least is None or gang.name == NO_NAME:
        return gang
    return _with_options(gang, least, notes, option_texts.seconds(notes), defaults)


_kept_of_values = functools.lru_cache(maxsize=4096)(_of_values)
"""Returns one object for all members that declare the same."""


def _with_options(
    gang: Gang, least: int, notes: Mapping[str, str], wait: float, defaults: Defaults
) -> Gang:
    total = option_texts.int32(notes[names.ANNOTATION_GANG_TOTAL]) or least
    policy = notes[names.ANNOTATION_GANG_MATCH_POLICY]
    policy = policy or notes[names.ANNOTATION_POD_GROUP_MATCH_POLICY]
    mode = notes[names.ANNOTATION_GANG_MODE]
    repair = notes[names.ANNOTATION_GANG_REPAIR]
    return msgspec.structs.replace(
        gang,
        initialised=True,
        min_member=least,
        total=max(total, least),
        mode=Mode.NON_STRICT if mode == Mode.NON_STRICT.value else Mode.STRICT,
        match_policy=MatchPolicy(policy)
        if policy in option_texts.POLICIES
        else defaults.match_policy,
        wait_seconds=wait if wait > 0 else defaults.wait_seconds,
        group=option_texts.gang_ids(notes[names.ANNOTATION_GANG_GROUPS]) or (gang.id,),
        topology=option_texts.topology(notes[names.ANNOTATION_GANG_NETWORK_TOPOLOGY]),
        repair=Repair(repair) if repair in option_texts.REPAIRS else Repair.NONE,
    )
