"""Parts that many kinds share: metadata, references, selectors, conditions."""

from collections.abc import Iterable
from typing import Annotated, Literal

import pydantic
from pydantic import Field

from api.wire import base


class Owner(base.Model):
    """Who owns an object."""

    api_version: base.Text = ""
    kind: base.Text = ""
    name: base.Text = ""
    uid: base.Text = ""
    controller: base.Bool = False
    block_owner_deletion: base.Bool | None = None


class Meta(base.Model):
    """What every object carries."""

    name: base.Text = ""
    namespace: base.Text = ""
    generate_name: base.Text = ""
    uid: base.Text = ""
    resource_version: base.Text = ""
    generation: int = 0
    creation_timestamp: base.Moment | None = None
    deletion_timestamp: base.Moment | None = None
    labels: dict[str, str] = Field(default={})
    annotations: dict[str, str] = Field(default={})
    owner_references: tuple[Owner, ...] = ()
    finalizers: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Return ``namespace/name``, or the name alone where there is no namespace."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class Object(base.Model):
    """Base of all kinds."""

    api_version: base.Text = ""
    kind: base.Text = ""
    metadata: Meta = Meta()

    @property
    def name(self) -> str:
        """Return the object's name."""
        return self.metadata.name


class ObjectReference(base.Model):
    """A reference to an object; only the given parts count."""

    api_version: base.Text = ""
    """Group and version of the object."""
    kind: base.Text = ""
    """Kind of the object."""
    namespace: base.Text = ""
    """Namespace of the object."""
    name: base.Text = ""
    """Name of the object."""
    uid: base.Text = ""
    """UID of the object."""
    resource_version: base.Text = ""
    """Version of the object that is meant."""
    field_path: base.Text = ""
    """Part of the object that is meant."""


class Requirement(base.Model):
    """One condition on a label."""

    model_config = pydantic.ConfigDict(
        json_schema_extra={
            "x-kubernetes-validations": [
                {
                    "rule": "self.operator in ['Exists', 'DoesNotExist'] || "
                    "(has(self.values) && size(self.values) > 0)",
                    "message": "values: In and NotIn need at least one value",
                },
                {
                    "rule": "self.operator in ['In', 'NotIn'] || "
                    "!has(self.values) || size(self.values) == 0",
                    "message": "values: Exists and DoesNotExist take no values",
                },
            ]
        }
    )

    key: base.Text
    """Label that is looked at."""
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    """How the label's value is compared."""
    values: tuple[base.Text, ...] = Field(default=(), max_length=1000)
    """Values for In and NotIn; empty for the other operators."""

    @pydantic.model_validator(mode="after")
    def _values_fit(self) -> "Requirement":
        if self.operator in {"In", "NotIn"} and not self.values:
            raise ValueError(f"values: {self.operator} needs at least one value")
        if self.operator in {"Exists", "DoesNotExist"} and self.values:
            raise ValueError(f"values: {self.operator} takes no values")
        return self


class LabelSelector(base.Model):
    """Selects by labels; all parts must hold, an empty selector matches everything."""

    model_config = pydantic.ConfigDict(json_schema_extra={"x-kubernetes-map-type": "atomic"})

    match_labels: dict[str, base.Text] = Field(default={})
    """Labels that must have exactly these values."""
    match_expressions: tuple[Requirement, ...] = Field(default=(), max_length=128)
    """Conditions that must all hold."""


Status = Literal["True", "False", "Unknown"]


class Condition(base.Model):
    """One observed fact about an object, in the form that kubectl understands."""

    type: Annotated[str, Field(max_length=316)]
    """What the condition is about."""
    status: Status
    """Whether it holds."""
    reason: Annotated[
        str,
        Field(min_length=1, max_length=1024, pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"),
    ]
    """Why, in one word."""
    message: Annotated[str, Field(max_length=32768)]
    """Why, for people."""
    last_transition_time: base.Moment
    """When the status last changed."""
    observed_generation: base.NonNegative | None = None
    """Generation of the object that was looked at."""


class LooseCondition(base.Model):
    """One observed fact about an object, without obligatory parts."""

    type: base.Text = ""
    """What the condition is about."""
    status: base.Text = ""
    """True, False or Unknown."""
    reason: base.Text = ""
    """Why, in one word."""
    message: base.Text = ""
    """Why, for people."""
    last_probe_time: Annotated[base.Moment | None, Field(json_schema_extra={"nullable": True})] = (
        None
    )
    """When it was last looked at."""
    last_transition_time: Annotated[
        base.Moment | None, Field(json_schema_extra={"nullable": True})
    ] = None
    """When the status last changed."""


def condition(conditions: Iterable[LooseCondition], kind: str) -> LooseCondition | None:
    """Return the condition of this type."""
    return next((item for item in conditions if item.type == kind), None)
