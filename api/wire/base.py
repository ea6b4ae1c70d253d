"""What every custom resource and every payload model is made of."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Generic, NamedTuple, Self, TypeVar

import msgspec
import pydantic
from pydantic import Field, Strict, StringConstraints

from api.wire import durations, quantity, untrusted

JSON = Any
T = TypeVar("T")

_INITIALISMS: Final = {
    "be": "BE",
    "bps": "BPS",
    "cpu": "CPU",
    "cpus": "CPUs",
    "id": "ID",
    "iops": "IOPS",
    "numa": "NUMA",
    "qos": "QOS",
}
# Passed as validation context: field names of JSON texts are matched without regard to case.
ANY_CASE: Final = {"any_case": True}
_MOST_TOLD: Final = 16
"""Bad fields that one message names."""


ReadError = untrusted.ReadError


class Read(NamedTuple, Generic[T]):
    """What a reader understood, and what the author of the object should know about it."""

    value: T
    warnings: tuple[str, ...] = ()


def wire_name(name: str) -> str:
    """Return the name of a Python field on the wire."""
    first, *rest = name.split("_")
    return first + "".join(_INITIALISMS.get(word, word.capitalize()) for word in rest)


class Model(pydantic.BaseModel):
    """Frozen, camelCase on the wire, unknown fields ignored, null means unset."""

    model_config = pydantic.ConfigDict(
        frozen=True,
        extra="ignore",
        alias_generator=wire_name,
        populate_by_name=True,
        protected_namespaces=(),
    )

    @pydantic.model_validator(mode="before")
    @classmethod
    def _admit(cls, raw: Any, info: pydantic.ValidationInfo) -> Any:
        if not isinstance(raw, Mapping):
            return raw
        present = {name: value for name, value in raw.items() if value is not None}
        if not info.context or not info.context.get("any_case"):
            return present
        known = {field.alias or name: name for name, field in cls.model_fields.items()}
        folded = {alias.casefold(): alias for alias in known}
        exact = {name: value for name, value in present.items() if name in known}
        for name, value in present.items():
            exact.setdefault(folded.get(name.casefold(), name), value)
        return exact

    def wire(self) -> dict[str, JSON]:
        """Return what was set, under its wire names, ready to be sent."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True, exclude_none=True)

    def but(self, **changes: object) -> Self:
        """Return a copy with some fields replaced."""
        return self.model_copy(update=changes)


M = TypeVar("M", bound=pydantic.BaseModel)


def validated(model: type[M], raw: JSON, what: str) -> M:
    """Read a JSON object into a model, or say what is wrong with which field."""
    try:
        return model.model_validate(raw)
    except pydantic.ValidationError as error:
        raise ReadError(f"{what}: {explained(error)}") from error


def read(model: type[M], raw: Mapping[str, JSON]) -> M:
    """Read an object of a kind whose model bears the kind's name."""
    name = section(raw, "metadata").get("name", "")
    return validated(model, raw, f"{model.__name__} {name}".rstrip())


def decoded(
    model: type[M], text: str, what: str, bounds: untrusted.Bounds = untrusted.ANNOTATION
) -> M:
    """Read a JSON text as annotations and configuration maps carry it: case does not matter."""
    try:
        return model.model_validate(untrusted.parsed(text, what, bounds), context=ANY_CASE)
    except pydantic.ValidationError as error:
        raise ReadError(f"{what}: {explained(error)}") from error


def encoded(value: JSON) -> str:
    """Write a payload as compact JSON with sorted keys, so that equal values give equal texts."""
    raw = value.wire() if isinstance(value, Model) else value
    return msgspec.json.encode(raw, order="sorted").decode()


def explained(error: pydantic.ValidationError) -> str:
    """Return one line that names the first bad fields, each with its reason."""
    found = error.errors(include_url=False, include_input=False)
    told = "; ".join(
        f"{dotted(problem['loc'])}: {_reason(problem['msg'])}" for problem in found[:_MOST_TOLD]
    )
    more = len(found) - _MOST_TOLD
    return f"{told}; and {more} more" if more > 0 else told


def _reason(message: str) -> str:
    return message.removeprefix("Value error, ")


def dotted(location: Sequence[int | str]) -> str:
    """Return a path such as ``spec.owners[0].controller``."""
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text or "object"


def section(raw: Mapping[str, JSON], name: str) -> dict[str, JSON]:
    """Return a nested object as a new dictionary, empty when it is missing or no object."""
    value = raw.get(name)
    return dict(value) if isinstance(value, Mapping) else {}


def _quantity(value: Any) -> Any:
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        raise ValueError("must be a quantity such as 2, 500m or 1.5Gi")
    quantity.parse(value)
    return str(value)


def _moment(value: Any) -> Any:
    if isinstance(value, int | float) and not 0 <= value <= durations.LAST_MOMENT:
        raise ValueError("must be a moment such as 2026-01-31T08:00:00Z")
    return durations.timestamp(value) if isinstance(value, str) else value


def _duration(value: Any) -> Any:
    if isinstance(value, int | float) and not -durations.LONGEST <= value <= durations.LONGEST:
        raise ValueError("must be a duration of at most 292 years")
    return durations.seconds(value) if isinstance(value, str) else value


def _lifetime(value: Any) -> Any:
    seconds = _duration(value)
    if isinstance(seconds, int | float) and seconds < 0:
        raise ValueError("must not be negative")
    return seconds


def schema(**extra: JSON) -> pydantic.WithJsonSchema:
    """Return the published schema of a scalar whose Python type says too little."""
    return pydantic.WithJsonSchema(dict(extra))


Int32 = Annotated[
    int, Strict(), Field(ge=-(2**31), le=2**31 - 1, json_schema_extra={"format": "int32"})
]
Int64 = Annotated[
    int, Strict(), Field(ge=-(2**63), le=2**63 - 1, json_schema_extra={"format": "int64"})
]
Bool = Annotated[bool, Strict()]
Text = Annotated[str, Strict()]
Name = Annotated[str, Strict(), StringConstraints(min_length=1)]
Percent = Annotated[int, Strict(), Field(ge=0, le=100, json_schema_extra={"format": "int64"})]
NonNegative = Annotated[
    int, Strict(), Field(ge=0, le=2**63 - 1, json_schema_extra={"format": "int64"})
]
Flag = Annotated[int, Strict(), Field(ge=0, le=1, json_schema_extra={"format": "int64"})]

Quantity = Annotated[
    str,
    pydantic.BeforeValidator(_quantity),
    schema(**{"x-kubernetes-int-or-string": True, "pattern": quantity.PATTERN}),
]
ResourceList = dict[str, Quantity]
Moment = Annotated[
    float,
    pydantic.BeforeValidator(_moment),
    pydantic.PlainSerializer(durations.moment, return_type=str),
    schema(type="string", format="date-time"),
]
Duration = Annotated[
    float,
    pydantic.BeforeValidator(_duration),
    pydantic.PlainSerializer(durations.text, return_type=str),
    schema(type="string", pattern=durations.PATTERN),
]
Lifetime = Annotated[
    float,
    pydantic.BeforeValidator(_lifetime),
    pydantic.PlainSerializer(durations.text, return_type=str),
    schema(type="string", pattern=durations.PATTERN.replace("[-+]?", "")),
]
Anything = Annotated[Any, schema(**{"x-kubernetes-preserve-unknown-fields": True})]
AnyObject = Annotated[
    dict[str, Any], schema(**{"type": "object", "x-kubernetes-preserve-unknown-fields": True})
]
