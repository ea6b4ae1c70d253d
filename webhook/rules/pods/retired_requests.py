"""Write retired names of resources as the present ones, by which nodes offer them.

kube-scheduler compares names as they are written, so what readers of ours understand is of no use
to a pod that waits.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from api import names
from domain.pods import renamed_resources
from webhook import review


class Rewritten(NamedTuple):
    """A pod whose containers ask by present names."""

    pod: review.Pod
    """The same object where they did already."""
    names: Mapping[str, str] = {}
    """Present names by the retired ones that were replaced."""
    warnings: tuple[str, ...] = ()
    """What was written instead of each, a sentence each."""


class _Found(NamedTuple):
    field: str
    name: str
    instead: str
    is_double: bool
    """Whether the present name stands beside the retired one."""

    @property
    def text(self) -> str:
        begin = f"{self.field}[{self.name}]: is retired, so"
        if self.is_double:
            return (
                f"{begin} it was left out, as {self.instead} stands there too; write "
                f"{self.instead} alone"
            )
        return f"{begin} {self.instead} was written instead; write {self.instead}"


def rewritten(pod: review.Pod) -> Rewritten:
    """Rename what containers and init containers ask for."""
    found = tuple(_found(pod))
    if not found:
        return Rewritten(pod)
    return Rewritten(
        renamed_resources.in_pod(pod),
        {one.name: one.instead for one in found},
        tuple(one.text for one in found),
    )


def _found(pod: review.Pod) -> Iterator[_Found]:
    spec = review.section(pod, "spec")
    for group in renamed_resources.GROUPS:
        for index, one in enumerate(spec.get(group) or ()):
            resources = review.section(one, "resources")
            for part in renamed_resources.PARTS:
                amounts = review.section(resources, part)
                for name in sorted(names.DEPRECATED_RESOURCES.keys() & amounts.keys()):
                    instead = names.DEPRECATED_RESOURCES[name]
                    field = f"spec.{group}[{index}].resources.{part}"
                    yield _Found(field, name, instead, instead in amounts)
