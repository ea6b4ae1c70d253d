"""Resource lists that older releases wrote, under the names that resources have today."""

from collections.abc import Mapping
from typing import Final, TypeVar

from api import names

_T = TypeVar("_T")
_DEPRECATED: Final = names.DEPRECATED_RESOURCES
_OLD: Final = frozenset(_DEPRECATED)


def current(written: Mapping[str, _T]) -> Mapping[str, _T]:
    """Return a resource list under present names: the same object where no name is deprecated.

    Of a resource under both names the present one counts.
    """
    if _OLD.isdisjoint(written):
        return written
    return {
        _DEPRECATED.get(name, name): value
        for name, value in written.items()
        if _DEPRECATED.get(name) not in written
    }
