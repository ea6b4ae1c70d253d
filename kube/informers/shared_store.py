"""Several projections of the objects of one list and watch, each in a store of its own; no I/O.

Every watch of pods costs the API server an event for each change and the process its decoding. Who
needs other fields of the same objects takes a view of the watch that is there already.
"""

import itertools
from collections.abc import Callable, Container, Iterator
from typing import Any, Generic, TypeVar

from kube.informers import store

T = TypeVar("T")

Values = tuple[Any, ...]
"""What each view keeps of one object, in the order of the views; None: of no interest."""


class SharedStore(store.Store[Values], Generic[T]):
    """What a reflector takes for its store, and hands on to all views.

    An object that one view cannot read, or on which a listener of one view fails, is left out there
    alone: a tenant who confuses one reader hides nothing from the others.
    """

    def __init__(self) -> None:
        self._views: list[tuple[Callable[[T], Any], store.Store[Any]]] = []
        self._faults: store.Fault | None = None
        super().__init__()

    @property
    def faults(self) -> store.Fault | None:
        """What is called when a listener of a view fails on an object."""
        return self._faults

    @faults.setter
    def faults(self, fault: store.Fault | None) -> None:
        self._faults = fault
        for view in self._stores():
            view.faults = fault

    def view(self, project: Callable[[T], Any]) -> store.Store[Any]:
        """Keep another projection of the same objects; before the first of them is seen."""
        if self._synced or self._version:
            raise RuntimeError("a view has to be taken before the watch starts")
        found: store.Store[Any] = store.Store()
        found.faults = self._faults
        self._views.append((project, found))
        return found

    def project(self, decoded: T) -> Values:
        """Return what each view keeps of an object.

        Raises a PartlyUnreadableError where some of them cannot read it.
        """
        values, flaws = [], []
        for project, _ in self._views:
            try:
                values.append(project(decoded))
            except store.UNREADABLE as error:
                values.append(None)
                flaws.append(f"{type(error).__name__}: {error}")
        if flaws:
            raise store.PartlyUnreadableError(tuple(values), "; ".join(flaws))
        return tuple(values)

    def _stores(self) -> Iterator[store.Store[Any]]:
        return (found for _, found in self._views)

    def _of_each(self, values: Values | None) -> Iterator[tuple[store.Store[Any], Any]]:
        if values is None:
            return zip(self._stores(), itertools.repeat(None))
        return zip(self._stores(), values, strict=True)

    # --- What a reflector does with its store ---------------------------------------------------

    def __len__(self) -> int:
        """How many objects the view has that keeps most of them."""
        return max(map(len, self._stores()), default=0)

    def __contains__(self, key: object) -> bool:
        return any(key in view for view in self._stores())

    def keys(self) -> Iterator[str]:
        """Iterate over the keys of the objects that any view keeps."""
        return iter(dict.fromkeys(itertools.chain(*(view.keys() for view in self._stores()))))

    def put(self, meta: store.Meta, value: Values | None) -> bool:
        """Take in an added or modified object."""
        self._version = max(self._version, meta.version)
        told = [view.put(meta, part) for view, part in self._of_each(value)]
        return any(told)

    def remove(self, key: str, version: int) -> bool:
        """Take in a deletion."""
        self._version = max(self._version, version)
        told = [view.remove(key, version) for view in self._stores()]
        return any(told)

    def bookmark(self, version: int) -> None:
        """Take in that everything up to this version has been told."""
        self._version = max(self._version, version)
        for view in self._stores():
            view.bookmark(version)

    def accept(self, meta: store.Meta, value: Values | None) -> None:
        """Take in an object of a list."""
        for view, part in self._of_each(value):
            view.accept(meta, part)

    def absent(self, seen: Container[str], count: int) -> Iterator[list[str]]:
        """Yield the keys that a list did not hold."""
        keys = list(self.keys())
        for start in range(0, len(keys), count):
            yield [key for key in keys[start : start + count] if key not in seen]

    def forget(self, key: str, version: int) -> None:
        """Drop what a list at this version did not hold."""
        for view in self._stores():
            view.forget(key, version)

    def finished(self, version: int) -> None:
        """End a list at its version."""
        super().finished(version)
        for view in self._stores():
            view.finished(version)
