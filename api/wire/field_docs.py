"""What the source says below each field of a model; read only where schemas are written."""

import pydantic
from pydantic._internal import _docs_extraction


def fields(model: type[pydantic.BaseModel]) -> dict[str, str]:
    """Return the text below each field, its own and inherited, by the field's Python name."""
    texts: dict[str, str] = {}
    for parent in reversed(model.__mro__):
        if issubclass(parent, pydantic.BaseModel) and parent is not pydantic.BaseModel:
            texts |= _docs_extraction.extract_docstrings_from_cls(parent, use_inspect=True)
    return texts
