"""List, watch, list again: keeps one store true, and never gives up for good."""

import asyncio
import dataclasses
import itertools
import logging
import random
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import msgspec

from api import resources
from api.kubernetes import core
from kube.client import client as clients
from kube.client import errors, wire
from kube.controllers import backoff
from kube.informers import list_pages, watch_health, watch_metrics, watch_progress
from kube.informers import store as stores
from process.runtime import clock as clocks
from process.runtime import metrics

logger = logging.getLogger(__name__)


T = TypeVar("T")
S = TypeVar("S", bound=msgspec.Struct)


@dataclasses.dataclass(frozen=True, slots=True)
class Projection(Generic[T]):
    """What a process wants to keep of a resource.

    ``type`` is what objects are decoded to: a msgspec struct with ``metadata``, or dict.
    ``project`` turns that into what is kept, None for objects of no interest; equal projections
    are no change. ``from_cache`` lets the API server answer the first list from its memory,
    which spares it when thousands of agents start at once; it is the default for narrow
    selections by field. ``grants`` says that objects of this resource give something away, such
    as a reservation or a healthy device: they are trusted only while a watch tells of deletions.
    ``binary`` reads events in protobuf, which cost the API server less; without it they are JSON.
    """

    resource: resources.Resource
    type: type[Any]
    project: Callable[[Any], T | None]
    fields: str = ""
    labels: str = ""
    namespace: str = ""
    from_cache: bool | None = None
    grants: bool = False
    optional: bool = False
    """Whether nothing is missing where the API server does not serve the resource."""
    binary: wire.BinaryEvents | None = None

    @property
    def is_from_cache(self) -> bool:
        """Whether the API server may answer lists from its memory."""
        return bool(self.fields) if self.from_cache is None else self.from_cache

    @property
    def selection(self) -> clients.Selection:
        """Return which objects are meant."""
        return clients.Selection(self.resource, self.namespace, self.labels, self.fields)


def whole(
    resource: resources.Resource,
    kind: type[S],
    *,
    fields: str = "",
    labels: str = "",
    namespace: str = "",
) -> Projection[S]:
    """Keep the decoded structs as they are."""
    return Projection(resource, kind, _same, fields, labels, namespace)


def config_map(name: str, namespace: str) -> Projection[core.ConfigMap]:
    """Keep one configuration map, for which a permission by its name is enough."""
    fields = f"metadata.name={name}"
    return whole(resources.CONFIG_MAPS, core.ConfigMap, fields=fields, namespace=namespace)


def raw(
    resource: resources.Resource, *, fields: str = "", labels: str = "", namespace: str = ""
) -> Projection[dict[str, Any]]:
    """Keep whole objects as dicts; only for small and few ones."""
    return Projection(resource, dict, _same, fields, labels, namespace)


def _same(value: Any) -> Any:
    return value


@dataclasses.dataclass(frozen=True, slots=True)
class Pace:
    """How long a reflector waits for what."""

    silence_seconds: float = 65.0
    """A watch that is silent for longer is opened again; bookmarks come about every minute."""
    shortest_watch_seconds: int = 300
    """A watch ends after a random time between this and twice this, to spread the load."""
    first_pause_seconds: float = 0.8
    longest_pause_seconds: float = 30.0
    outage_pause_seconds: float = 10.0
    """The longest pause while the server is away or overloaded: news come soon after it is back."""
    page: int = clients.PAGE
    streaming_list: bool = True


class _NotOfferedError(errors.KubeError):
    """The API server does not stream lists."""


class Reflector(Generic[T]):
    """Keeps a store equal to what the API server has of one projection."""

    def __init__(
        self,
        client: clients.Client,
        projection: Projection[T],
        store: stores.Store[T],
        clock: clocks.Clock,
        *,
        rng: random.Random | None = None,
        pace: Pace | None = None,
    ) -> None:
        self.projection = projection
        self.store = store
        self.contact = watch_health.WatchHealth(clock)
        self.progress = watch_progress.Progress(client.horizon)
        self._client = client
        self._clock = clock
        self._rng = rng or random.Random()
        self._pace = pace or Pace()
        self._reader = wire.Reader(projection.type, projection.project, projection.binary)
        self._selection = projection.selection
        self._figures = watch_metrics.Figures(
            client.registry or metrics.Registry(), projection.resource.review_name()
        )
        store.faults = self._figures.failed
        self._figures.age.set_function(lambda: self.contact.age)
        self._figures.objects.set_function(lambda: float(len(store)))
        self._figures.missing.set_function(lambda: float(self.contact.missing))
        self._version, self._streams_lists = "", self._pace.streaming_list
        self._trusts_cache = projection.is_from_cache
        self._set_back = list_pages.SetBackCheck(client, self._selection, self._trusts_cache)
        self._complete = asyncio.Event()
        self._stream, self._has_left = watch_progress.Stream(), False

    @property
    def name(self) -> str:
        """The resource, for people."""
        return self.projection.resource.review_name()

    async def synced(self) -> None:
        """Wait until the first complete list."""
        await self._complete.wait()

    def hasten(self) -> None:
        """Open a short watch instead of the present one, since that brings a bookmark soon."""
        if self.contact.connected and not self._stream.is_short:
            self._stream.is_short = True
            self._stream.reopen()

    def relist(self) -> None:
        """List again: the API server has left the history of what was, or yet is, delivered."""
        self._has_left = True
        self._stream.reopen()

    async def run(self) -> None:
        """List and watch for ever."""
        while True:
            rest = 0.0
            try:
                await self._stream.run(self._cycle)
            except (errors.Gone, errors.Malformed) as error:
                self._version = ""
                rest = self._note(error)
            except errors.Silent as error:
                # Bookmarks are not promised, so a quiet resource is no failure. Opening the watch
                # again costs little, and tells whether the connection was dead.
                logger.info("watch is opened again resource=%s reason=%s", self.name, error)
                self._set_back.suspect(error, self.contact, self.progress.version)
                continue
            except errors.KubeError as error:
                self._set_back.suspect(error, self.contact, self.progress.version)
                # Its memory may be behind what we ask for, for good after a restored backup.
                self._trusts_cache &= not isinstance(error, errors.ServerFailure)
                rest = self._note(error)
                if isinstance(error, errors.ApiError) and error.is_of_unserved_kind:
                    await self._unknown(error)
            finally:
                self.contact.closed()
            if rest:
                await self._clock.sleep(rest)

    async def _unknown(self, error: errors.ApiError) -> None:
        """Take in that the API server does not know the resource: then there is no object."""
        is_news, what = self.contact.unknown, self.projection
        is_always_served = not what.resource.group and isinstance(error, errors.NotFound)
        if is_always_served or not is_news(self.store.synced, optional=what.optional):
            return
        logger.warning("the API server does not serve it resource=%s", self.name)
        await self._finish(set(), "")

    async def _cycle(self) -> None:
        if self._has_left or (self._version and await self._set_back.is_set_back()):
            self._version, self._trusts_cache, self._has_left = "", False, False
        if self._version:
            await self._watch()
            return
        if self._streams_lists:
            try:
                await self._stream_list()
                return
            except (errors.BadRequest, errors.Invalid, _NotOfferedError) as error:
                logger.debug("lists are not streamed resource=%s reason=%s", self.name, error)
                self._streams_lists = False
            except errors.Silent:
                if self._version:
                    raise
                self._streams_lists = False
        await self._list()
        await self._watch()

    async def _list(self) -> None:
        """Take in a complete list page by page, letting others run in between."""
        began = self._clock.monotonic()
        least = self.store.version if self._trusts_cache else None
        query = list_pages.query(self._pace.page, least)
        is_consistent = "resourceVersion" not in query
        seen: set[str] = set()
        while True:
            try:
                data = await self._client.page(self._selection, query)
                page, items = self._reader.piecemeal(data)
            except errors.Gone:
                if "continue" not in query:
                    raise
                # Pages expire faster than we read them: take the rest of the world in one piece.
                query, seen, is_consistent = {}, set(), True
                continue
            version = wire.number(page.resource_version)
            if version < self.store.version and not is_consistent:
                self._trusts_cache = False
                raise errors.Malformed(
                    f"a list of {self.name} is older ({version}) than what was told before"
                )
            self.contact.heard()
            while some := list(itertools.islice(items, list_pages.SLICE)):
                for item in some:
                    self._accept(item, seen)
                await asyncio.sleep(0)
            if not page.continue_:
                break
            query = {"limit": str(self._pace.page), "continue": page.continue_}
        await self._finish(seen, page.resource_version, began if is_consistent else None)

    async def _stream_list(self) -> None:
        """Take in the list as the first events of a watch, then go on watching."""
        query = _watch_query(self._pace, self._rng)
        began = self._clock.monotonic()
        query["sendInitialEvents"] = "true"
        query["resourceVersionMatch"] = "NotOlderThan"
        seen: set[str] | None = set()
        self.contact.opens()
        async with self._opened(query) as batches:
            async for lines in batches:
                self.contact.heard()
                for line in lines:
                    event = self._reader.event(line)
                    if seen is None:
                        self._apply(event)
                    elif isinstance(event, wire.Event):
                        self._accept_event(event, seen)
                    elif event.ends_initial:
                        await self._finish(seen, event.version, began)
                        seen = None
                        self.contact.opened()
                    else:
                        raise _NotOfferedError("a bookmark came before the end of the list")
        self._ended()

    async def _watch(self) -> None:
        query = _watch_query(self._pace, self._rng)
        query["resourceVersion"] = self._version
        if self._stream.is_short:
            query["timeoutSeconds"] = str(watch_progress.SHORT_SECONDS)
        self.contact.opens()
        async with self._opened(query) as batches:
            self.contact.opened()
            async for lines in batches:
                self.contact.heard()
                for line in lines:
                    self._apply(self._reader.event(line))
        self._ended()

    def _opened(self, query: dict[str, str]) -> clients.Watch:
        is_binary, silence = self.projection.binary is not None, self._pace.silence_seconds
        return self._client.watch(self._selection, query, silence=silence, protobuf=is_binary)

    def _ended(self) -> None:
        """Note the end of a watch in good order: one that ends at once counts as a failure."""
        if self.contact.was_idle:
            raise errors.Unreachable(f"a watch of {self.name} ended before it told anything")

    def _accept(self, item: wire.Item[T], seen: set[str]) -> None:
        if item.flaw:
            self._figures.left_out(item.meta.key, item.flaw)
        seen.add(item.meta.key)
        self.store.accept(item.meta, item.value)

    def _accept_event(self, event: wire.Event[T], seen: set[str]) -> None:
        """Take in an event before the end of a streamed list; changes may already mix in."""
        if event.deleted:
            seen.discard(event.item.meta.key)
            self.store.remove(event.item.meta.key, event.item.meta.version)
        else:
            self._accept(event.item, seen)

    async def _finish(self, seen: set[str], version: str, began: float | None = None) -> None:
        gone = await list_pages.end(self.store, seen, wire.number(version))
        self._version = version
        self.progress.listed(wire.number(version), began)
        self.contact.listed()
        self._trusts_cache = self.projection.is_from_cache
        self._figures.lists.inc()
        self._complete.set()
        logger.info(
            "list is complete resource=%s objects=%d kept=%d gone=%d version=%s",
            self.name, len(seen), len(self.store), gone, version,
        )  # fmt: skip

    def _apply(self, event: wire.Event[T] | wire.Bookmark) -> None:
        self.contact.recovered()
        if isinstance(event, wire.Bookmark):
            self._version = event.version
            self.store.bookmark(wire.number(event.version))
            self.progress.advance(wire.number(event.version))
            return
        item = event.item
        if item.flaw:
            self._figures.left_out(item.meta.key, item.flaw)
        self._figures.events.inc()
        if event.deleted:
            self.store.remove(item.meta.key, item.meta.version)
        else:
            self.store.put(item.meta, item.value)
        # The last one delivered, even if it is older: what is delivered twice does no harm.
        self._version = str(item.meta.version) if item.meta.version else self._version
        self.progress.advance(item.meta.version)

    def _note(self, error: errors.KubeError) -> float:
        """Note a failure and return how long to wait after it."""
        self.contact.failed(error)
        self._figures.failures.inc()
        rest = _rest(error, self.contact.failures, self._pace, self._rng)
        logger.log(
            logging.DEBUG if self.contact.missing else logging.WARNING,
            "list or watch failed resource=%s again_in=%.1f error=%s", self.name, rest, error,
        )  # fmt: skip
        return rest


def _watch_query(pace: Pace, rng: random.Random) -> dict[str, str]:
    seconds = pace.shortest_watch_seconds * rng.uniform(1, 2)
    return {"allowWatchBookmarks": "true", "timeoutSeconds": str(int(seconds))}


def _rest(error: errors.KubeError, failures: int, pace: Pace, rng: random.Random) -> float:
    """Return how long to wait after so many failures in a row."""
    if isinstance(error, errors.ApiError) and error.retry_after is not None:
        # The server knows how long it needs; spread out, so that not all return at once.
        return error.retry_after + pace.first_pause_seconds * rng.uniform(0.5, 1.0)
    longest = pace.longest_pause_seconds
    if isinstance(error, errors.OUTAGE):
        longest = min(longest, pace.outage_pause_seconds)
    return backoff.pause(failures, pace.first_pause_seconds, longest, rng)
