"""Warn about retired names, and say what replaces them; readers of ours take one for the other."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from api import names
from webhook import review

LABELS: Final = {names.LABEL_POD_GROUP_OLD: names.LABEL_POD_GROUP}
ANNOTATIONS: Final = {names.ANNOTATION_SCHEDULING_HINT_OLD: names.ANNOTATION_SCHEDULING_HINT}
_CONTAINERS: Final = ("initContainers", "containers")
_AMOUNTS: Final = ("min", "max", "hard")
_UNDERSTOOD: Final = "is retired and will stop working; write {} instead"
_UNKNOWN: Final = "is retired, and kube-scheduler finds no node that offers it; write {} instead"
_OF_CLASS: Final = (
    "is retired, and kube-scheduler finds no node that offers it; write {} in the RuntimeClass"
)


class _Found(NamedTuple):
    field: str
    name: str
    instead: str
    sentence: str = _UNDERSTOOD


def warnings(body: review.Pod, before: review.Pod | None = None) -> Iterator[str]:
    """Yield a sentence for each retired name that an object has and did not have before."""
    known = set(_found(before)) if before is not None else set()
    for one in _found(body):
        if one not in known:
            yield f"{one.field}[{one.name}]: {one.sentence.format(one.instead)}"


def _found(body: review.Pod) -> Iterator[_Found]:
    metadata, spec = review.section(body, "metadata"), review.section(body, "spec")
    yield from _names("metadata.labels", review.section(metadata, "labels"), LABELS)
    yield from _names("metadata.annotations", review.section(metadata, "annotations"), ANNOTATIONS)
    for part in _AMOUNTS:
        yield from _resources(spec, part, "spec", _UNDERSTOOD)
    # Of a pod only what admission has not renamed: it was not asked, or may not.
    yield from _of_containers(spec, "spec", _UNKNOWN)
    yield from _resources(spec, "overhead", "spec", _OF_CLASS)
    template = review.section(review.section(spec, "template"), "spec")
    yield from _of_containers(template, "spec.template.spec", _UNDERSTOOD)
    yield from _resources(template, "overhead", "spec.template.spec", _OF_CLASS)
    patch = review.section(review.section(spec, "patch"), "spec")
    yield from _of_containers(patch, "spec.patch.spec", _UNDERSTOOD)


def _of_containers(spec: Mapping[str, Any], path: str, sentence: str) -> Iterator[_Found]:
    for group in _CONTAINERS:
        containers = spec.get(group)
        for index, one in enumerate(containers if isinstance(containers, list) else ()):
            resources = review.section(one, "resources") if isinstance(one, Mapping) else {}
            for part in ("requests", "limits"):
                yield from _resources(
                    resources, part, f"{path}.{group}[{index}].resources", sentence
                )


def _resources(section: Mapping[str, Any], part: str, path: str, sentence: str) -> Iterator[_Found]:
    written = review.section(section, part)
    yield from _names(f"{path}.{part}", written, names.DEPRECATED_RESOURCES, sentence)


def _names(
    field: str,
    written: Mapping[str, Any],
    retired: Mapping[str, str],
    sentence: str = _UNDERSTOOD,
) -> Iterator[_Found]:
    for name in sorted(written.keys() & retired.keys()):
        yield _Found(field, name, retired[name], sentence)
