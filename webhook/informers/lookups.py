"""Read what a review has to know that no watch keeps."""

import asyncio
import dataclasses
import logging
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import msgspec

from api import resources
from api.kubernetes import core
from api.wire import base
from domain.quota.tree import quota_trees
from kube.client import client, errors
from webhook import review

logger = logging.getLogger(__name__)

T = TypeVar("T")

_UNFINISHED: Final = "status.phase!=Succeeded,status.phase!=Failed"
_FEW: Final = 3
"""As many pods of a selection as an answer needs."""


class Lookups:
    """Reads from the API server for single reviews; what cannot be read counts as not there."""

    def __init__(
        self, kube: client.Client, charge: Callable[[review.Charge], Awaitable[str]] | None = None
    ) -> None:
        """`charge` asks a quota for room; without it every quota has room."""
        self._kube, self._charge = kube, charge

    async def answered(self, asked: review.Review, needs: review.Needs) -> review.Review:
        """Return the review with all that it needs."""
        if needs == review.NO_NEEDS:
            return asked
        if needs.charge is not None and self._charge is not None:
            return dataclasses.replace(asked, over_quota=await self._charge(needs.charge))
        bound, pods, quotas = await asyncio.gather(
            self._bound(asked) if needs.bound else _none(),
            asyncio.gather(*(self._pods(query) for query in needs.pods)),
            asyncio.gather(*(self._quotas(name) for name in needs.quotas)),
        )
        named = zip(needs.quotas, quotas, strict=True)
        return dataclasses.replace(
            asked,
            bound=bound,
            pods=tuple(pod for found in pods for pod in found),
            quotas={name: found for name, found in named if found is not None},
        )

    async def _bound(self, asked: review.Review) -> review.Pod | None:
        reading = self._kube.get(resources.PODS, asked.name, asked.namespace)
        return await _read(reading, f"pod={asked.namespace}/{asked.name}")

    async def _pods(self, query: review.PodQuery) -> list[str]:
        selection = client.Selection(resources.PODS, query.namespace, query.labels, _UNFINISHED)
        reading = self._kube.page(selection, {"limit": str(_FEW)})
        page = await _read(reading, f"pods labels={query.labels} namespace={query.namespace}")
        try:
            found = _PODS.decode(page or b"{}").items
        except msgspec.DecodeError as wrong:
            logger.warning("pods labels=%s unread reason=%s", query.labels, wrong)
            return []
        return [f"{pod.metadata.namespace}/{pod.metadata.name}" for pod in found]

    async def _quotas(self, name: str) -> list[quota_trees.Member] | None:
        """Return the quotas of a name in all groups, None where that cannot be known."""
        lists = await asyncio.gather(
            *(self._named(name, resource) for resource in resources.QUOTA_RESOURCES)
        )
        members: list[quota_trees.Member] = []
        for found in lists:
            if found is None:
                return None
            members += found
        return members

    async def _named(
        self, name: str, resource: resources.Resource
    ) -> list[quota_trees.Member] | None:
        try:
            found = await self._kube.list(resource, fields=f"metadata.name={name}")
        except errors.NotFound:
            return []  # This group is not installed.
        except errors.KubeError as wrong:
            logger.warning("quota=%s unread reason=%s", name, wrong)
            return None
        members = []
        for item in found.items:
            try:
                members.append(quota_trees.member(item))
            except (base.ReadError, ValueError) as wrong:
                logger.warning("quota=%s left out reason=%s", name, wrong)
        return members


_PODS: Final = msgspec.json.Decoder(core.PodList)


async def _none() -> None:
    return None


async def _read(reading: Awaitable[T], what: str) -> T | None:
    try:
        return await reading
    except errors.KubeError as wrong:
        logger.warning("%s unread reason=%s", what, wrong)
        return None
