"""Recommendation: what a workload should request, judged by its history."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import pydantic
from pydantic import Field

from api.kubernetes import meta
from api.wire import base


class WorkloadReference(base.Model):
    """A workload."""

    kind: base.Text
    """Kind of the workload."""
    name: base.Text
    """Name of the workload."""
    api_version: base.Text = ""
    """Group and version of the workload."""


class Target(base.Model):
    """Whose history is looked at."""

    model_config = pydantic.ConfigDict(
        json_schema_extra={
            "x-kubernetes-validations": [
                {
                    "rule": "self.type != 'workload' || has(self.workload)",
                    "message": "workload: required when type is workload",
                },
                {
                    "rule": "self.type != 'podSelector' || has(self.podSelector)",
                    "message": "podSelector: required when type is podSelector",
                },
            ]
        }
    )

    type: Literal["workload", "podSelector"]
    """Which of the following fields counts."""
    workload: WorkloadReference | None = None
    """A workload of the same namespace."""
    pod_selector: meta.LabelSelector | None = None
    """Pods of the same namespace."""

    @pydantic.model_validator(mode="after")
    def _complete(self) -> "Target":
        given = self.workload if self.type == "workload" else self.pod_selector
        if given is None:
            raise ValueError(f"{self.type}: required when type is {self.type}")
        return self


class Spec(base.Model):
    """What is asked."""

    target: Target
    """Whose history is looked at."""


class ContainerRecommendation(base.Model):
    """What one container should request."""

    container_name: base.Text = ""
    """The container."""
    resources: base.ResourceList = Field(default={})
    """Recommended requests."""
    lower_bound: base.ResourceList = Field(default={})
    """Less than this is too little, as far as is known."""
    upper_bound: base.ResourceList = Field(default={})
    """More than this is too much, as far as is known."""


class PodRecommendation(base.Model):
    """What a pod should request."""

    container_statuses: tuple[ContainerRecommendation, ...] = ()
    """Its containers."""


class Status(base.Model):
    """The answer."""

    pod_status: PodRecommendation | None = None
    """What a pod should request."""
    update_time: base.Moment | None = None
    """When it was computed."""
    conditions: Annotated[tuple[meta.Condition, ...], Field(max_length=64)] = ()
    """Ready; LowConfidence, NoObjectsMatched, FetchingHistory, ConfigUnsupported are bad news."""
    checkpoint: str = ""
    """What was learned so far, packed; the next computation goes on from here."""


class Recommendation(meta.Object):
    """What a workload should request, judged by its history."""

    spec: Spec
    """What is asked."""
    status: Status = Status()
    """The answer."""


def read_recommendation(raw: Mapping[str, Any]) -> Recommendation:
    """Read a Recommendation."""
    return base.read(Recommendation, raw)
