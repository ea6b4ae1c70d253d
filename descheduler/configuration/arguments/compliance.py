"""Arguments of the standard plug-ins that look for pods which break a rule where they are."""

import difflib
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Final, Literal, Self

import pydantic
from pydantic import Field

from api.plugin_args.arguments import Arguments
from descheduler.configuration.arguments import parts

Texts = Annotated[tuple[str, ...], Field(max_length=256)]
ExitCodes = Annotated[
    tuple[Annotated[int, Field(ge=-(2**31), le=2**31 - 1)], ...], Field(max_length=256)
]
_STATES: Final = frozenset(
    {
        *("Running", "Pending", "Succeeded", "Failed", "Unknown", "NodeAffinity", "NodeLost"),
        *("Shutdown", "UnexpectedAdmissionError", "PodInitializing", "ContainerCreating"),
        *("ImagePullBackOff", "CrashLoopBackOff", "CreateContainerConfigError", "ErrImagePull"),
        *("CreateContainerError", "InvalidImageName", "OOMKilled", "Error", "Completed"),
        *("DeadlineExceeded", "Evicted", "ContainerCannotRun", "StartError"),
        *("ContainerStatusUnknown", "Preempting", "RunContainerError", "ErrImageNeverPull"),
    }
)


class PodRule(Arguments):
    """Which pods a rule is about."""

    namespaces: parts.Namespaces | None = None
    """Namespaces that are looked at; all when missing."""
    label_selector: parts.LabelSelector | None = None
    """Pods that are looked at; all when missing."""


class OwnerKinds(Arguments):
    """Kinds of owners that are included, or that are excluded; not both."""

    include: Texts = ()
    """Kinds that count; all when empty."""
    exclude: Texts = ()
    """Kinds that do not count."""

    @pydantic.model_validator(mode="after")
    def _is_one_list(self) -> Self:
        if self.include and self.exclude:
            raise ValueError("include and exclude are both given; keep one of them")
        return self


class ConditionFilter(Arguments):
    """A condition of a pod; what is left out may be anything."""

    type: str = ""
    """Type of the condition."""
    status: str = ""
    """Its status."""
    reason: str = ""
    """Its reason."""
    min_time_since_last_transition_seconds: parts.Whole | None = None
    """Least time since it last changed."""

    @pydantic.model_validator(mode="after")
    def _says_something(self) -> Self:
        if not self.model_fields_set:
            raise ValueError("says nothing; give a type, status, reason or least time")
        return self


class PodLifeTimeArgs(PodRule):
    """Remove pods that are too old, in some state, or have ended in some way."""

    max_pod_life_time_seconds: parts.Whole | None = None
    """Age from which on a pod is removed."""
    states: Texts = ()
    """Phases of pods and reasons of container states that count."""
    conditions: Annotated[tuple[ConditionFilter, ...], Field(max_length=64)] = ()
    """Conditions of which one has to hold."""
    exit_codes: ExitCodes = ()
    """Exit codes of containers that count."""
    owner_kinds: OwnerKinds | None = None
    """Kinds of owners whose pods count."""
    including_init_containers: bool = False
    """Look at init containers too."""
    including_ephemeral_containers: bool = False
    """Look at ephemeral containers too."""

    @pydantic.model_validator(mode="after")
    def _has_a_criterion(self) -> Self:
        given = (self.states, self.conditions, self.exit_codes)
        if self.max_pod_life_time_seconds is None and not any(given):
            raise ValueError(
                "there is no criterion; give maxPodLifeTimeSeconds, states, conditions or exitCodes"
            )
        return self

    def doubts(self) -> Iterator[tuple[str, str]]:
        """Yield fields that are legal and have no effect, each with what to do instead."""
        yield from _misspelt_states(self.states)


class RemoveFailedPodsArgs(PodRule):
    """Remove pods that have failed."""

    min_pod_lifetime_seconds: parts.Whole = 3600
    """Least age of pods that are removed."""
    reasons: Texts = ()
    """Reasons that count, of pods or containers; all when empty."""
    exit_codes: ExitCodes = ()
    """Exit codes that count; all when empty."""
    exclude_owner_kinds: Texts = ()
    """Kinds of owners whose pods stay."""
    including_init_containers: bool = False
    """Look at init containers too."""


class RemoveDuplicatesArgs(Arguments):
    """Move pods of one owner that share a node although others would take them."""

    namespaces: parts.Namespaces | None = None
    """Namespaces that are looked at; all when missing."""
    exclude_owner_kinds: Texts = ()
    """Kinds of owners whose pods stay."""


class RemovePodsHavingTooManyRestartsArgs(PodRule):
    """Remove pods whose containers restart again and again."""

    pod_restart_threshold: parts.Positive
    """Restarts of all containers together from which on a pod is removed."""
    including_init_containers: bool = False
    """Count restarts of init containers too."""
    states: tuple[Literal["Running", "CrashLoopBackOff"], ...] = ()
    """States that count; all when empty."""


class RemovePodsViolatingInterPodAntiAffinityArgs(PodRule):
    """Move pods beside which another pod does not want to run."""


NodeAffinityType = Literal[
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
]


class RemovePodsViolatingNodeAffinityArgs(PodRule):
    """Move pods whose node no longer has the labels that they ask for."""

    node_affinity_type: Annotated[tuple[NodeAffinityType, ...], Field(min_length=1)]
    """Kinds of node affinity that are looked at."""


class RemovePodsViolatingNodeTaintsArgs(PodRule):
    """Move pods from nodes with a taint that they do not tolerate."""

    include_prefer_no_schedule: bool = False
    """Look at taints with the effect PreferNoSchedule too."""
    excluded_taints: Texts = ()
    """Taints that do not count, each `key` or `key=value`."""
    included_taints: Texts = ()
    """Taints that count, each `key` or `key=value`; all when empty."""

    @pydantic.model_validator(mode="after")
    def _is_one_list(self) -> Self:
        if self.excluded_taints and self.included_taints:
            raise ValueError("excludedTaints and includedTaints are both given; keep one of them")
        return self


_HARD: Final = "DoNotSchedule"


class RemovePodsViolatingTopologySpreadConstraintArgs(PodRule):
    """Move pods that are spread more unevenly than they ask for."""

    constraints: tuple[Literal["DoNotSchedule", "ScheduleAnyway"], ...] = (_HARD,)
    """Kinds of constraints that are looked at."""
    topology_balance_node_fit: bool = True
    """Move a pod only where a node of a domain with fewer pods takes it; `false`: such a node is
    preferred."""

    def complete(self) -> Self:
        """Return the arguments with every default filled in."""
        return self if self.constraints else self.but(constraints=(_HARD,))


def _misspelt_states(states: Iterable[str]) -> Iterator[tuple[str, Any]]:
    for state in states:
        close = difflib.get_close_matches(state[:80], _STATES, 1)
        if state not in _STATES and close:
            yield "states", f"{state[:80]} is no state that Kubernetes writes; write {close[0]}"
