"""Warn about retired names, and say what replaces them; they are understood as before."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from api import names
from webhook import review

LABELS: Final = {names.LABEL_POD_GROUP_OLD: names.LABEL_POD_GROUP}
ANNOTATIONS: Final = {names.ANNOTATION_SCHEDULING_HINT_OLD: names.ANNOTATION_SCHEDULING_HINT}
_CONTAINERS: Final = ("initContainers", "containers")
_AMOUNTS: Final = ("min", "max", "hard")


def warnings(body: review.Pod, before: review.Pod | None = None) -> Iterator[str]:
    """Yield a sentence for each retired name that an object has and did not have before."""
    known = set(_found(before)) if before is not None else set()
    for field, name, instead in _found(body):
        if (field, name, instead) not in known:
            yield f"{field}[{name}]: is retired and will stop working; write {instead} instead"


def _found(body: review.Pod) -> Iterator[tuple[str, str, str]]:
    metadata, spec = review.section(body, "metadata"), review.section(body, "spec")
    yield from _names("metadata.labels", review.section(metadata, "labels"), LABELS)
    yield from _names("metadata.annotations", review.section(metadata, "annotations"), ANNOTATIONS)
    for part in _AMOUNTS:
        amounts = review.section(spec, part)
        yield from _names(f"spec.{part}", amounts, names.DEPRECATED_RESOURCES)
    yield from _of_spec(spec, "spec")
    template = review.section(spec, "template")
    yield from _of_spec(review.section(template, "spec"), "spec.template.spec")


def _of_spec(spec: Mapping[str, Any], path: str) -> Iterator[tuple[str, str, str]]:
    for group in _CONTAINERS:
        containers = spec.get(group)
        for index, one in enumerate(containers if isinstance(containers, list) else ()):
            resources = review.section(one, "resources") if isinstance(one, Mapping) else {}
            for part in ("requests", "limits"):
                field = f"{path}.{group}[{index}].resources.{part}"
                amounts = review.section(resources, part)
                yield from _names(field, amounts, names.DEPRECATED_RESOURCES)
    overhead = review.section(spec, "overhead")
    yield from _names(f"{path}.overhead", overhead, names.DEPRECATED_RESOURCES)


def _names(
    field: str, written: Mapping[str, Any], retired: Mapping[str, str]
) -> Iterator[tuple[str, str, str]]:
    for name in sorted(written.keys() & retired.keys()):
        yield field, name, retired[name]
