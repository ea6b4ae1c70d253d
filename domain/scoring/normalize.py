"""NormalizeScore and the plug-ins that are hardly more: taints, node affinity, images, spread."""

import math
from typing import Final

import numpy as np

from domain.scoring import columns as node_columns

Integers = node_columns.Integers

HIGHEST: Final = 100
_MEBIBYTE: Final = 1024 * 1024
SMALLEST_IMAGES: Final = 23 * _MEBIBYTE
"""Below this ImageLocality scores nothing."""
LARGEST_IMAGE: Final = 1000 * _MEBIBYTE
"""At this size per image ImageLocality scores the most."""
HOST_SKEW: Final = 3
ZONE_SKEW: Final = 5
"""maxSkew of the system's default constraints, for hosts and zones."""


def proportional(raw: Integers) -> Integers:
    """Scale to 0 to 100 by the largest raw score, as NodeAffinity does; all zeros stay zeros."""
    most = int(raw.max(initial=0))
    return raw * HIGHEST // most if most else raw


def reversed_proportional(raw: Integers) -> Integers:
    """Scale so that the largest raw score becomes 0, as TaintToleration does."""
    most = int(raw.max(initial=0))
    return HIGHEST - (raw * HIGHEST // most if most else raw)


def image_scores(image_bytes: Integers, count: int) -> Integers:
    """Return the ImageLocality score of scaled image sizes for a pod of so many images."""
    most = LARGEST_IMAGE * count
    within = np.minimum(np.maximum(image_bytes, SMALLEST_IMAGES), most)
    scores: Integers = HIGHEST * (within - SMALLEST_IMAGES) // (most - SMALLEST_IMAGES)
    return scores


def spread_raw(spread: node_columns.SpreadColumns, rows: Integers) -> Integers:
    """Return the PodTopologySpread score before it is normalised: less is better.

    Hosts count the pods on the node itself. Zones count pods on all nodes that the pod may run on,
    where a zone has a candidate. Each is weighted by the number of candidates or of their zones.
    """
    matching = spread.matching
    host_weight = math.log(len(rows) + 2)
    hosts = matching.take(rows) * host_weight + float(HOST_SKEW - 1)
    score = np.where(spread.hosted.take(rows), hosts, 0.0)
    zones = spread.zone.take(rows)
    counted = matching if spread.counted is None else matching * spread.counted
    by_zone = np.bincount(spread.zone, weights=counted, minlength=int(zones.max(initial=0)) + 1)
    zone_weight = math.log(np.count_nonzero(np.bincount(zones)) + 2)
    in_zones = by_zone.take(zones) * zone_weight + float(ZONE_SKEW - 1)
    return _rounded(score + np.where(spread.zoned.take(rows), in_zones, 0.0))


def _rounded(score: node_columns.Floats) -> Integers:
    """Round half away from zero as Go's `math.Round`; scores are never negative."""
    whole = np.trunc(score)
    return (whole + (score - whole >= 0.5)).astype(np.int64)


def spread_scores(raw: Integers) -> Integers:
    """Return the normalised PodTopologySpread score: 100 is the least crowded candidate."""
    most = int(raw.max(initial=0))
    if not most:
        return np.full_like(raw, HIGHEST)
    return HIGHEST * (most + int(raw.min()) - raw) // most
