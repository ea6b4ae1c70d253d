"""What a pod brings to the score plug-ins, read once per pod."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from api.kubernetes import core
from domain.scoring import objects, releases, requests, terms

Amounts = Mapping[str, int]
PREFER_NO_SCHEDULE: Final = "PreferNoSchedule"
_VOLUME_SOURCES: Final = (
    releases.ImageSources.VOLUMES,
    releases.ImageSources.COUNTED_VOLUMES,
)


class PodScoring(msgspec.Struct, frozen=True, gc=False):
    """A pending pod as the score plug-ins see it."""

    namespace: str
    labels: Mapping[str, str]
    requests: Amounts
    """Plain requests; scored by NodeResourcesBalancedAllocation."""
    nonzero: Amounts
    """Requests with a minimum per container; scored by NodeResourcesFit."""
    tolerations: tuple[core.Toleration, ...] = ()
    """Those that may cover a PreferNoSchedule taint."""
    preferences: terms.Preferences | None = None
    """Preferred node affinity; None where the pod states none, which skips NodeAffinity."""
    requirements: terms.NodeRequirements | None = None
    """What the pod requires of nodes: pods on other nodes do not count for its spread."""
    images: tuple[str, ...] = ()
    """Full names of the images that ImageLocality looks for, repeated where used twice."""
    image_count: int = 1
    """Number of images that the ImageLocality score is divided by."""
    spread: terms.Selector | None = None
    """Selector of the system's default spread constraints; None where nothing selects the pod."""


def read(
    pod: objects.Pod, release: releases.Release, spread: terms.Selector | None = None
) -> PodScoring:
    """Read a pod; `spread` is what `spreading.default_selector` found for it."""
    spec = pod.spec
    node_affinity = (spec.affinity or {}).get("nodeAffinity") or {}
    return PodScoring(
        namespace=pod.metadata.namespace,
        labels=pod.metadata.labels,
        requests=requests.plain(pod, release),
        nonzero=requests.nonzero(pod),
        tolerations=tuple(
            one for one in spec.tolerations if one.effect in ("", PREFER_NO_SCHEDULE)
        ),
        preferences=_preferences(node_affinity),
        requirements=terms.node_requirements(spec.node_selector, node_affinity),
        images=images(spec, release.images),
        image_count=_image_count(spec, release.images),
        spread=spread if spread and spread.requirements else None,
    )


def _preferences(node_affinity: Mapping[str, Any]) -> terms.Preferences | None:
    written = node_affinity.get("preferredDuringSchedulingIgnoredDuringExecution")
    return terms.preferences(node_affinity) if written else None


def full_name(image: str) -> str:
    """Return an image as nodes name it: without a tag or digest it is the latest."""
    return image if image.rfind(":") > image.rfind("/") else f"{image}:latest"


def images(spec: objects.PodSpec, sources: releases.ImageSources) -> tuple[str, ...]:
    """Return the full names of the images that ImageLocality looks for."""
    found = [one.image for one in spec.containers]
    if sources is not releases.ImageSources.CONTAINERS:
        found = [one.image for one in spec.init_containers] + found
    if sources in _VOLUME_SOURCES:
        found += [one.image.reference for one in spec.volumes if one.image is not None]
    return tuple(map(full_name, found))


def _image_count(spec: objects.PodSpec, sources: releases.ImageSources) -> int:
    count = len(spec.containers)
    if sources is not releases.ImageSources.CONTAINERS:
        count += len(spec.init_containers)
    if sources is releases.ImageSources.COUNTED_VOLUMES:
        count += sum(one.image is not None for one in spec.volumes)
    return max(count, 1)
