"""List, watch, list again: keeps one store true, and never gives up for good."""

import asyncio
import dataclasses
import logging
import math
import random
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

import msgspec

from api import resources
from kube import backoff, errors, wire
from kube import client as clients
from kube import store as stores
from process import clock as clocks
from process import metrics

logger = logging.getLogger(__name__)

T = TypeVar("T")
S = TypeVar("S", bound=msgspec.Struct)

_SHORTEST_WATCH: Final = 1.0


@dataclasses.dataclass(frozen=True, slots=True)
class Projection(Generic[T]):
    """What a process wants to keep of a resource.

    ``type`` is what objects are decoded to: a msgspec struct with ``metadata``, or dict.
    ``project`` turns that into what is kept, None for objects of no interest; equal projections
    are no change. ``from_cache`` lets the API server answer the first list from its memory,
    which spares it when thousands of agents start at once; it is the default for narrow
    selections by field.
    """

    resource: resources.Resource
    type: type[Any]
    project: Callable[[Any], T | None]
    fields: str = ""
    labels: str = ""
    namespace: str = ""
    from_cache: bool | None = None

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

    silence_seconds: float = 75.0
    """A watch that is silent for longer, although bookmarks come every minute, is dead."""
    shortest_watch_seconds: int = 300
    """A watch ends after a random time between this and twice this, to spread the load."""
    first_pause_seconds: float = 0.8
    longest_pause_seconds: float = 30.0
    page: int = clients.PAGE
    streaming_list: bool = True


def _loop_time() -> float:
    return asyncio.get_running_loop().time()


class _Figures:
    def __init__(self, registry: metrics.Registry, resource: str) -> None:
        labels = ("resource",)
        self.events = registry.counter(
            "koord_kube_watch_events_total", "Objects told by watches.", labels
        ).labels(resource)
        self.lists = registry.counter(
            "koord_kube_lists_total", "Complete lists taken in by reflectors.", labels
        ).labels(resource)
        self.failures = registry.counter(
            "koord_kube_watch_failures_total", "Lists and watches that failed.", labels
        ).labels(resource)
        self.unreadable = registry.counter(
            "koord_kube_unreadable_objects_total", "Objects of an unexpected shape.", labels
        ).labels(resource)
        self.objects = registry.gauge(
            "koord_kube_store_objects", "Objects kept in the store.", labels
        ).labels(resource)


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
        self._client = client
        self._clock = clock
        self._rng = rng or random.Random()
        self._pace = pace or Pace()
        self._reader = wire.Reader(projection.type, projection.project)
        self._selection = projection.selection
        self._figures = _Figures(
            client.registry or metrics.Registry(), projection.resource.review_name()
        )
        self._version = ""
        self._streams_lists = self._pace.streaming_list
        self._trusts_cache = projection.is_from_cache
        self._failures = 0
        self._last_error = ""
        self._connected = False
        self._last_contact: float | None = None
        self._told = 0.0
        self._complete = asyncio.Event()

    @property
    def name(self) -> str:
        """The resource, for people."""
        return self.projection.resource.review_name()

    @property
    def connected(self) -> bool:
        """Whether a watch is open at this moment."""
        return self._connected

    @property
    def last_contact(self) -> float | None:
        """When the API server was last heard of, on the monotonic clock; None if never."""
        return self._last_contact

    @property
    def age(self) -> float:
        """For how many seconds nothing was heard, infinite before the first word."""
        if self._last_contact is None:
            return math.inf
        return self._clock.monotonic() - self._last_contact

    @property
    def last_error(self) -> str:
        """Why the last list or watch failed, empty while all is well."""
        return self._last_error

    async def synced(self) -> None:
        """Wait until the first complete list."""
        await self._complete.wait()

    async def run(self) -> None:
        """List and watch for ever."""
        while True:
            try:
                await self._cycle()
            except errors.Gone as error:
                logger.info("watch is too old, listing again resource=%s", self.name)
                self._version = ""
                self._note(error)
            except errors.Malformed as error:
                self._version = ""
                self._note(error)
            except errors.KubeError as error:
                self._note(error)
            finally:
                self._connected = False
            if self._failures:
                pace = self._pace
                await self._clock.sleep(
                    backoff.pause(
                        self._failures,
                        pace.first_pause_seconds,
                        pace.longest_pause_seconds,
                        self._rng,
                    )
                )

    async def _cycle(self) -> None:
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
        await self._list()
        await self._watch()

    async def _list(self) -> None:
        """Take in a complete list page by page, letting others run in between."""
        query = self._list_query()
        is_consistent = "resourceVersion" not in query
        seen: set[str] = set()
        while True:
            try:
                page, items = self._reader.page(await self._client.page(self._selection, query))
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
            self._touch()
            for start in range(0, len(items), clients.PAGE):
                for item in items[start : start + clients.PAGE]:
                    self._accept(item, seen)
                await asyncio.sleep(0)
            if not page.continue_:
                break
            query = {"limit": str(self._pace.page), "continue": page.continue_}
        self._finish(seen, page.resource_version)

    def _list_query(self) -> dict[str, str]:
        query = {"limit": str(self._pace.page)}
        if self._trusts_cache:
            # After the first time, not older than what we know.
            query["resourceVersion"] = str(self.store.version)
            query["resourceVersionMatch"] = "NotOlderThan"
        return query

    async def _stream_list(self) -> None:
        """Take in the list as the first events of a watch, then go on watching."""
        query = self._watch_query()
        query["sendInitialEvents"] = "true"
        query["resourceVersionMatch"] = "NotOlderThan"
        seen: set[str] | None = set()
        opened = _loop_time()
        async with self._client.watch(
            self._selection, query, silence=self._pace.silence_seconds
        ) as batches:
            async for lines in batches:
                self._touch()
                for line in lines:
                    event = self._reader.event(line)
                    if seen is None:
                        self._apply(event)
                    elif isinstance(event, wire.Event):
                        self._accept(event.item, seen)
                    elif event.ends_initial:
                        self._finish(seen, event.version)
                        seen = None
                        self._connected = True
                    else:
                        raise _NotOfferedError("a bookmark came before the end of the list")
        self._ended(opened)

    async def _watch(self) -> None:
        query = self._watch_query()
        query["resourceVersion"] = self._version
        opened = _loop_time()
        async with self._client.watch(
            self._selection, query, silence=self._pace.silence_seconds
        ) as batches:
            self._last_contact = self._clock.monotonic()
            self._connected = True
            async for lines in batches:
                self._touch()
                for line in lines:
                    self._apply(self._reader.event(line))
        self._ended(opened)

    def _watch_query(self) -> dict[str, str]:
        seconds = self._pace.shortest_watch_seconds * self._rng.uniform(1, 2)
        return {"allowWatchBookmarks": "true", "timeoutSeconds": str(int(seconds))}

    def _ended(self, opened: float) -> None:
        """Note the end of a watch in good order: one that ends at once counts as a failure."""
        # Real time on purpose: this guards against a server that we would call without a pause.
        if self._told < opened and _loop_time() - opened < _SHORTEST_WATCH:
            raise errors.Unreachable(f"a watch of {self.name} ended before it told anything")

    def _accept(self, item: wire.Item[T], seen: set[str]) -> None:
        self._check(item)
        seen.add(item.meta.key)
        self.store.accept(item.meta, item.value)

    def _finish(self, seen: set[str], version: str) -> None:
        gone = self.store.finish(seen, wire.number(version))
        self._version = version
        self._trusts_cache = self.projection.is_from_cache
        self._figures.lists.inc()
        self._figures.objects.set(len(self.store))
        self._complete.set()
        logger.info(
            "list is complete resource=%s objects=%d kept=%d gone=%d version=%s",
            self.name,
            len(seen),
            len(self.store),
            gone,
            version,
        )

    def _apply(self, event: wire.Event[T] | wire.Bookmark) -> None:
        self._failures, self._last_error = 0, ""
        if isinstance(event, wire.Bookmark):
            self._version = event.version
            self.store.bookmark(wire.number(event.version))
            return
        item = event.item
        self._check(item)
        self._figures.events.inc()
        if event.deleted:
            self.store.remove(item.meta.key, item.meta.version)
        else:
            self.store.put(item.meta, item.value)
        self._figures.objects.set(len(self.store))
        # The last one told, even if it is older: what is told twice does no harm.
        self._version = str(item.meta.version) if item.meta.version else self._version

    def _check(self, item: wire.Item[T]) -> None:
        if item.flaw:
            self._figures.unreadable.inc()
            logger.warning(
                "object is unreadable and left out resource=%s key=%s reason=%s",
                self.name,
                item.meta.key,
                item.flaw,
            )

    def _touch(self) -> None:
        self._last_contact = self._clock.monotonic()
        self._told = _loop_time()

    def _note(self, error: errors.KubeError) -> None:
        self._failures += 1
        self._last_error = str(error)
        self._figures.failures.inc()
        logger.warning("list or watch failed resource=%s error=%s", self.name, error)
