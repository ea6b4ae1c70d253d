"""What differs between minor versions of kube-scheduler, with their default feature gates."""

import dataclasses
import enum
from typing import Final


class ImageSources(enum.Enum):
    """Which images of a pod ImageLocality looks for."""

    CONTAINERS = "containers"
    INIT_CONTAINERS = "containers and init containers"
    VOLUMES = "volumes too, which do not raise the number of images that the score is divided by"
    COUNTED_VOLUMES = "volumes too"


class Resizing(enum.Enum):
    """How the requests of a pod that is being resized in place are found."""

    IGNORED = "what the spec says"
    CONTAINER = "the largest per container"
    POD = "the largest sum"


@dataclasses.dataclass(frozen=True, slots=True)
class Release:
    """One minor version, as far as scores depend on it."""

    minor: int
    balance_gain: bool
    """NodeResourcesBalancedAllocation scores what a pod changes, not what it leaves behind."""
    balance_skips_best_effort: bool
    """NodeResourcesBalancedAllocation leaves out pods that request nothing it looks at."""
    images: ImageSources
    stale_image_counts: bool
    """ImageLocality counts nodes as of the last change of each, which only the scheduler knows."""
    sidecars_apart: bool
    """NonZeroRequested of a node takes sidecars for init containers that end."""
    pod_level_requests: bool
    """Requests of the pod as a whole replace the sum of its containers."""
    resizing: Resizing
    pod_level_resizing: bool
    """Pod-level requests follow a resize as well."""


def _release(minor: int) -> Release:
    return Release(
        minor=minor,
        balance_gain=minor >= 36,
        balance_skips_best_effort=minor >= 33,
        images=_images(minor),
        stale_image_counts=minor <= 28,
        sidecars_apart=minor <= 31,
        pod_level_requests=minor >= 34,
        resizing=_resizing(minor),
        pod_level_resizing=minor >= 36,
    )


def _images(minor: int) -> ImageSources:
    if minor >= 37:
        return ImageSources.COUNTED_VOLUMES
    if minor >= 36:
        return ImageSources.VOLUMES
    return ImageSources.INIT_CONTAINERS if minor >= 30 else ImageSources.CONTAINERS


def _resizing(minor: int) -> Resizing:
    if minor < 33:
        return Resizing.IGNORED
    return Resizing.CONTAINER if minor < 37 else Resizing.POD


OLDEST: Final = 28
NEWEST: Final = 37
RELEASES: Final = {minor: _release(minor) for minor in range(OLDEST, NEWEST + 1)}
"""Every minor version of Kubernetes 1 whose scores are known, by its number."""
