"""Which program runs on which core, so that figures can be compared with those of other rigs."""

import contextlib
import enum
import os
from collections.abc import Iterator


class Layout(enum.StrEnum):
    """Where the control plane, the scheduler among it, and the extender run."""

    APART = "apart"
    """etcd, API server, controllers and scheduler share one core; the extender has another one,
    together with the benchmark itself."""
    SHARED = "shared"
    """Everything shares two cores as the system likes."""


class LayoutError(ValueError):
    """A layout that needs more cores than there are."""


class Cores:
    """Two cores of this machine; a program runs where its parent was at that moment."""

    def __init__(self, layout: Layout) -> None:
        """Go to the cores of the extender and the benchmark."""
        self.layout = layout
        found = sorted(os.sched_getaffinity(0))[:2]
        if layout is Layout.APART and len(found) < 2:
            raise LayoutError("the layout 'apart' needs two cores; use --layout=shared")
        is_apart = layout is Layout.APART
        self._control = {found[0]} if is_apart else set(found)
        self._rest = {found[1]} if is_apart else set(found)
        os.sched_setaffinity(0, self._rest)

    @contextlib.contextmanager
    def control(self) -> Iterator[None]:
        """Start programs of the control plane."""
        os.sched_setaffinity(0, self._control)
        try:
            yield
        finally:
            os.sched_setaffinity(0, self._rest)
