"""What a settings model accepts: its paths, their types, and the nearest known name."""

import dataclasses
import functools
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import pydantic
from pydantic._internal import _docs_extraction
from pydantic.fields import FieldInfo

from process.configuration import sources


@dataclasses.dataclass(frozen=True, slots=True)
class Described:
    """One setting as the generated reference and --help show it."""

    path: str
    """Dotted camelCase path, as in a file or a flag."""
    names: tuple[str, ...]
    """The same path in Python names."""
    type: str
    default: str
    """The default as it would be written in a file; empty when the setting is required."""
    description: str


@dataclasses.dataclass(frozen=True, slots=True)
class Target:
    """A place in a model that a path of keys leads to."""

    names: tuple[str, ...]
    annotation: Any
    """The declared type; Any inside a free-form mapping."""


def describe(model: type[pydantic.BaseModel]) -> tuple[Described, ...]:
    """List every setting below a model, in the order of its fields."""
    return tuple(_described(model, (), ()))


def _described(
    model: type[pydantic.BaseModel], path: tuple[str, ...], names: tuple[str, ...]
) -> Iterator[Described]:
    texts = _texts(model)
    for name, field in model.model_fields.items():
        group = group_of(field.annotation)
        here, there = (*path, field.alias or name), (*names, name)
        if group is not None:
            yield from _described(group, here, there)
            continue
        yield Described(
            path=".".join(here),
            names=there,
            type=_type_text(field.annotation),
            default=_default_text(field),
            description=" ".join((field.description or texts.get(name, "")).split()),
        )


def _texts(model: type[pydantic.BaseModel]) -> dict[str, str]:
    """Return the text below each field in the source.

    They are read where they are asked for: while models are made, that would cost every
    process time and memory.
    """
    texts: dict[str, str] = {}
    for parent in reversed(model.__mro__):
        if issubclass(parent, pydantic.BaseModel) and parent is not pydantic.BaseModel:
            texts |= _own_texts(parent)
    return texts


@functools.cache
def _own_texts(model: type[pydantic.BaseModel]) -> Mapping[str, str]:
    # Several models share groups, and their source is parsed each time.
    return _docs_extraction.extract_docstrings_from_cls(model, use_inspect=True)


def _default_text(field: FieldInfo) -> str:
    if field.is_required():
        return ""
    value = field.get_default(call_default_factory=True, validated_data={})
    return sources.to_text(pydantic.TypeAdapter(Any).dump_python(value, mode="json"))


def _type_text(annotation: Any) -> str:
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return _type_text(arguments[0])
    if origin is Literal:
        return " or ".join(str(choice) for choice in arguments)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(_type_text(part) for part in arguments if part is not types.NoneType)
    name = getattr(origin or annotation, "__name__", str(annotation))
    inner = ", ".join(_type_text(part) for part in arguments if part is not Ellipsis)
    return f"{name.lower()} of {inner}" if inner else name


def alternatives(annotation: Any) -> Iterator[Any]:
    """Yield what an annotation allows, without wrappers and unions; None stays in."""
    origin = typing.get_origin(annotation)
    if origin is typing.Annotated:
        yield from alternatives(typing.get_args(annotation)[0])
    elif origin in (typing.Union, types.UnionType):
        for part in typing.get_args(annotation):
            yield from alternatives(part)
    else:
        yield annotation


def group_of(annotation: Any) -> type[pydantic.BaseModel] | None:
    """Return the settings group an annotation holds, directly or optionally."""
    for part in alternatives(annotation):
        if isinstance(part, type) and issubclass(part, pydantic.BaseModel):
            return part
    return None


def is_mapping(annotation: Any) -> bool:
    """Tell whether a mapping or a group may stand here."""
    return group_of(annotation) is not None or any(
        issubclass(kind, Mapping) for kind in _classes(annotation)
    )


def is_sequence(annotation: Any) -> bool:
    """Tell whether a list may stand here."""
    return any(issubclass(kind, list | tuple | set | frozenset) for kind in _classes(annotation))


def is_optional(annotation: Any) -> bool:
    """Tell whether null may stand here."""
    return any(part is types.NoneType for part in alternatives(annotation))


def _classes(annotation: Any) -> Iterator[type]:
    for part in alternatives(annotation):
        kind = typing.get_origin(part) or part
        if isinstance(kind, type):
            yield kind


def _inside(annotation: Any) -> Any:
    """Return the type of the items of a list or of the values of a mapping."""
    for part in alternatives(annotation):
        arguments = [inner for inner in typing.get_args(part) if inner is not Ellipsis]
        if arguments:
            return arguments[-1]
    return Any


def fold(name: str) -> str:
    """Reduce keepAliveSeconds, keep-alive-seconds and KEEP_ALIVE_SECONDS to one spelling."""
    return name.replace("_", "").replace("-", "").lower()


def resolve(model: type[pydantic.BaseModel], path: Sequence[str]) -> Target | None:
    """Follow a path of keys in any spelling; None when nothing of that name exists."""
    names: list[str] = []
    annotation: Any = model
    for segment in path:
        group = group_of(annotation)
        if group is not None:
            name = next((n for n in group.model_fields if fold(n) == fold(segment)), None)
            if name is None:
                return None
            names.append(name)
            annotation = group.model_fields[name].annotation
        elif annotation is Any or is_mapping(annotation) or is_sequence(annotation):
            names.append(segment)
            annotation = _inside(annotation)
        else:
            return None
    return Target(tuple(names), annotation)


def nearest(model: type[pydantic.BaseModel], path: Sequence[str]) -> str | None:
    """Return the dotted path of the setting or group that looks most like a misspelt one."""
    known = {fold(entry.path): entry.path for entry in describe(model)}
    for dotted in tuple(known.values()):
        parent = dotted.rpartition(".")[0]
        if parent:
            known.setdefault(fold(parent), parent)
    # The parents of a wrong key are usually right, so they weigh as much as the key itself.
    import difflib  # noqa: PLC0415 - only a mistake needs it, and an agent counts its memory

    found = difflib.get_close_matches(fold(".".join(path)), known, 1, 0.6)
    return known[found[0]] if found else None
