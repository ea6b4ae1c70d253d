"""ClusterColocationProfile: how matching pods are changed on admission."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

import pydantic
from pydantic import Field

from api.kubernetes import meta
from api.wire import base

_PERCENTAGE: Final = re.compile(r"[0-9]+%", re.ASCII)
_MOST_DIGITS: Final = 9


def _probability(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError('must be an integer or a percentage such as "30%"')
    if isinstance(value, str) and not _PERCENTAGE.fullmatch(value):
        raise ValueError(f'"{value}" is no percentage; write an integer or "30%"')
    return value


Probability = Annotated[
    int | str,
    pydantic.BeforeValidator(_probability),
    base.schema(**{"x-kubernetes-int-or-string": True, "pattern": "^[0-9]+%$"}),
]


class Spec(base.Model):
    """Which pods are changed, and how."""

    namespace_selector: meta.LabelSelector | None = None
    """Namespaces by their labels; all when unset."""
    selector: meta.LabelSelector | None = None
    """Pods by their labels; all when unset."""
    probability: Probability | None = None
    """Chance in percent that a matching pod is changed; 100 when unset."""
    qos_class: Literal["LSE", "LSR", "LS", "BE", "SYSTEM"] | None = None
    """QoS class given to the pod."""
    priority_class_name: base.Text = ""
    """Priority class given to the pod, together with its value and preemption policy."""
    koordinator_priority: base.Int32 | None = None
    """Order among pods of the same priority class."""
    labels: dict[str, base.Text] = Field(default={})
    """Labels given to the pod."""
    annotations: dict[str, base.Text] = Field(default={})
    """Annotations given to the pod."""
    label_keys_mapping: dict[str, base.Text] = Field(default={})
    """From old to new label key: the new label gets the old one's value."""
    annotation_keys_mapping: dict[str, base.Text] = Field(default={})
    """From old to new annotation key: the new annotation gets the old one's value."""
    label_suffixes: dict[str, base.Text] = Field(default={})
    """Suffix appended to the value of a label that the pod has."""
    scheduler_name: base.Text = ""
    """Scheduler given to the pod."""
    patch: base.Anything = None
    """Strategic merge patch applied to the pod."""


class Status(base.Model):
    """What becomes of the profile."""

    conditions: Annotated[tuple[meta.Condition, ...], Field(max_length=64)] = ()
    """Accepted, Ready, Effective."""


class ClusterColocationProfile(meta.Object):
    """How matching pods are changed on admission."""

    spec: Spec = Spec()
    """Which pods are changed, and how."""
    status: Status = Status()
    """What becomes of the profile."""

    @property
    def percentage(self) -> int:
        """Return the chance in percent that a matching pod is changed."""
        written = self.spec.probability
        if written is None:
            return 100
        if isinstance(written, int):
            return written
        digits = written.removesuffix("%").lstrip("0")
        # What is left out of more digits makes no difference: it is more than 100 in any case.
        return int(digits[:_MOST_DIGITS] or 0)


def read_profile(raw: Mapping[str, Any]) -> ClusterColocationProfile:
    """Read a profile."""
    return review_profile(raw).value


def review_profile(raw: Mapping[str, Any]) -> base.Read[ClusterColocationProfile]:
    """Read a profile and report what its author has probably overlooked.

    Whatever stands in its status must not keep it from being applied; the status read is empty.
    """
    profile = base.read(ClusterColocationProfile, {**raw, "status": {}})
    warnings = []
    if profile.spec.selector is None and profile.spec.namespace_selector is None:
        warnings.append(
            "spec: neither selector nor namespaceSelector is given, so every pod matches"
        )
    return base.Read(profile, tuple(warnings))
