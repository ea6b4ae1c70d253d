"""ScheduleExplanation: why a pod or a job is not placed."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from api.kubernetes import meta
from api.wire import base


class Spec(base.Model):
    """What is asked."""

    question_object_key: base.Text = ""
    """Namespace and name of the pod or job, or the identifier of a group of gangs."""
    question_object_template: base.AnyObject | None = None
    """Reserved."""
    ttl: base.Lifetime = Field(default=24 * 3600.0, json_schema_extra={"x-default": "24h"})
    """Lifetime of the answer; 0 for ever."""


class Placement(base.Model):
    """Where one pod could go."""

    namespace: base.Text = ""
    """Namespace of the pod."""
    name: base.Text = ""
    """Name of the pod."""
    uid: base.Text = ""
    """UID of the pod."""
    node_name: base.Text = ""
    """The node."""


class Refusal(base.Model):
    """Nodes that were refused for one reason."""

    failed_plugin: base.Text = ""
    """Who refused."""
    reason: base.Text = ""
    """Why."""
    preempt_might_help: base.Bool = False
    """Whether removing other pods could help."""
    failed_nodes: tuple[base.Text, ...] = ()
    """The nodes."""


class Attempt(base.Model):
    """Outcome of one attempt."""

    schedulable: base.Bool = False
    """Whether everything could be placed."""
    failed_message: base.Text = ""
    """Why not."""
    feasible_scheduling_result: tuple[Placement, ...] = ()
    """Where pods could go."""
    node_failed_details: tuple[Refusal, ...] = ()
    """Why nodes were refused."""


class Victim(base.Model):
    """A pod that would have to give way."""

    namespace: base.Text = ""
    """Namespace of the pod."""
    name: base.Text = ""
    """Name of the pod."""
    uid: base.Text = ""
    """UID of the pod."""
    is_nominated_pod: base.Bool = False
    """Whether the pod itself still waits for its node."""


class NodeVictims(base.Model):
    """Pods of one node that would have to give way."""

    node_name: base.Text = ""
    """The node."""
    possible_victims: tuple[Victim, ...] = ()
    """The pods."""


class Detail(base.Model):
    """The answer for one topology domain."""

    topology_domain: base.Text = ""
    """The domain."""
    schedulable: base.Bool = False
    """Whether everything could be placed."""
    schedulable_after_preemption: base.Bool = False
    """Whether it could after other pods gave way."""
    failed_message: base.Text = ""
    """Why not."""
    schedule_explanation: Attempt | None = None
    """The attempt without preemption."""
    node_possible_victims: tuple[NodeVictims, ...] = ()
    """Who would have to give way."""
    preempt_explanation: Attempt | None = None
    """The attempt with preemption."""


class Status(base.Model):
    """The answer."""

    schedulable: base.Bool = False
    """Whether everything could be placed."""
    schedulable_after_preemption: base.Bool = False
    """Whether it could after other pods gave way."""
    failed_message: base.Text = ""
    """Why not."""
    last_update_time: base.Moment | None = None
    """When the answer was last confirmed."""
    detailed_explanation: tuple[Detail, ...] = ()
    """The answer by topology domain."""
    conditions: Annotated[tuple[meta.Condition, ...], Field(max_length=64)] = ()
    """Current."""


class ScheduleExplanation(meta.Object):
    """Why a pod or a job is not placed."""

    spec: Spec = Spec()
    """What is asked."""
    status: Status = Status()
    """The answer."""


def read_schedule_explanation(raw: Mapping[str, Any]) -> ScheduleExplanation:
    """Read a ScheduleExplanation."""
    return base.read(ScheduleExplanation, raw)
