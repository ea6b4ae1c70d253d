"""What the source says below each field of a model; read only where schemas are written."""

import functools
from collections.abc import Mapping

import pydantic
from pydantic._internal import _docs_extraction


def fields(model: type[pydantic.BaseModel]) -> dict[str, str]:
    """Return the text below each field, its own and inherited, by the field's Python name."""
    texts: dict[str, str] = {}
    for parent in reversed(model.__mro__):
        if issubclass(parent, pydantic.BaseModel) and parent is not pydantic.BaseModel:
            texts |= _own(parent)
    return texts


@functools.cache
def _own(model: type[pydantic.BaseModel]) -> Mapping[str, str]:
    # Base models are shared by most kinds, and their source is parsed each time.
    return _docs_extraction.extract_docstrings_from_cls(model, use_inspect=True)
