"""Whether a pod fits into its ElasticQuota: the PreFilter check. Pure."""

from collections.abc import Mapping

from domain.quota import model

Amounts = model.Amounts
Bounds = tuple[Amounts, Amounts, Amounts]
"""Limit, what is used, and what the pod asks for."""


def wanted(requests: model.Pairs) -> dict[str, int]:
    """Return what a pod takes from its quota: its requests and itself."""
    return {**dict(requests), model.PODS: 1}


def exceeded(name: str, kind: model.Kind, bounds: Bounds, less: Amounts) -> model.Shortage | None:
    """Return the shortage where used and requested are more than the limit in some resource.

    Every resource counts that is limited and used, also those that the pod does not ask for.
    """
    limit, used, asked = bounds
    left: Mapping[str, int] = {key: amount - less.get(key, 0) for key, amount in used.items()}
    over = tuple(
        sorted(
            key
            for key, most in limit.items()
            if key in left and left[key] + asked.get(key, 0) > most
        )
    )
    return model.Shortage(name, kind, limit, left, asked, over) if over else None
