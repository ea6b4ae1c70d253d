"""watch: the events of a collection as a stream."""

import asyncio
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from simulator.apiserver import services
from simulator.apiserver.http import api_errors, requests, responses
from simulator.apiserver.registry import kinds
from simulator.apiserver.storage import object_store
from simulator.apiserver.tables import tables
from simulator.apiserver.verbs import reads, selectors

Object = dict[str, Any]

BOOKMARK_SECONDS = 60.0
# How long before the regular end of a stream its last bookmark comes.
LAST_BOOKMARK_SECONDS = 2.0
LIFETIME_SECONDS = (1800.0, 3600.0)
INITIAL_END = "k8s.io/initial-events-end"


@dataclass(slots=True)
class Watch:
    """One open watch: what it wants and how far it got."""

    parts: services.Services
    kind: kinds.Kind
    info: requests.RequestInfo
    view: responses.View
    version: int
    passes: selectors.Test
    bookmarks: bool
    ends: float
    """Monotonic instant at which the stream ends regularly."""
    initial: list[Object] = field(default_factory=list)
    announce_initial: bool = False
    left: int | None = None
    """How many more events an injected fault lets through."""
    headed: bool = True
    next_bookmark: float = 0.0
    caught_up: bool = False
    """Whether everything was written that had happened when the stream last looked."""

    def first(self) -> Iterator[bytes]:
        """Yield the state that the stream begins with."""
        for item in self.initial:
            yield self._line("ADDED", item)
        if self.announce_initial:
            yield self._bookmark(initial=True)

    def following(self) -> Iterator[bytes]:
        """Yield what happened since the last call; Gone when it was forgotten."""
        for event in self.parts.store.since(self.kind.sort, self.version):
            line = self._event(event)
            if line is not None:
                yield line
        self.version = self.parts.store.version
        self.caught_up = True
        now = self.parts.clock.monotonic()
        if self.bookmarks and now >= self.next_bookmark:
            self.next_bookmark = _next_bookmark(now, self.ends)
            yield self._bookmark()

    def due(self, *, woken: bool) -> bool:
        """Tell at a tick whether there is something to write; most streams may sleep on."""
        due = self.bookmarks and self.parts.clock.monotonic() >= self.next_bookmark
        if due or self.over:
            return True
        if self.caught_up and not woken:
            # Nothing of its kind has happened since, so what is forgotten meanwhile is not missed.
            self.version = self.parts.store.version
        return False

    @property
    def over(self) -> bool:
        """Whether the time of this stream is up."""
        return self.parts.closing or self.parts.clock.monotonic() >= self.ends

    def _event(self, event: object_store.Event) -> bytes | None:
        if self.info.namespace and event.key.namespace != self.info.namespace:
            return None
        now = services.shown(self.kind, event.object)
        before = None if event.previous is None else services.shown(self.kind, event.previous)
        was = before is not None and self.passes(before)
        fits = self.passes(now) and event.type != "DELETED"
        if fits:
            return self._line("MODIFIED" if was else "ADDED", now)
        if not was or before is None:
            return None
        # Who leaves a selection is shown as it last was in it, with the version of leaving.
        meta = {**before["metadata"], "resourceVersion": str(event.version)}
        last = now if event.type == "DELETED" else {**before, "metadata": meta}
        return self._line("DELETED", last)

    def _line(self, kind: str, item: Object) -> bytes:
        if self.view.table:
            item = tables.table(
                self.kind,
                [item],
                self.parts.clock.now(),
                metadata={"resourceVersion": item["metadata"]["resourceVersion"]},
                include=self.info.query.get("includeObject") or "Metadata",
                headed=self.headed,
            )
            self.headed = False
        return responses.encoded({"type": kind, "object": item}) + b"\n"

    def _bookmark(self, *, initial: bool = False) -> bytes:
        meta: Object = {"resourceVersion": str(self.version), "creationTimestamp": None}
        if initial:
            meta["annotations"] = {INITIAL_END: "true"}
        item = {
            "kind": self.kind.name,
            "apiVersion": self.kind.resource.api_version,
            "metadata": meta,
        }
        return responses.encoded({"type": "BOOKMARK", "object": item}) + b"\n"


async def watch(
    parts: services.Services, kind: kinds.Kind, info: requests.RequestInfo, request: web.Request
) -> web.StreamResponse:
    """Answer with events until the time is up, the client leaves or its version is forgotten."""
    opened = _opened(parts, kind, info, request.headers.get("Accept", ""))
    response = web.StreamResponse(headers={"Content-Type": responses.JSON})
    response.enable_chunked_encoding()
    woken = asyncio.Event()
    stop = parts.store.subscribe(lambda _: woken.set(), kind.sort)

    def tick() -> None:
        if opened.due(woken=woken.is_set()):
            woken.set()

    parts.wakers.add(tick)
    try:
        await response.prepare(request)
        await _stream(opened, response, woken, request)
    finally:
        stop()
        parts.wakers.discard(tick)
    return response


async def _stream(
    opened: Watch, response: web.StreamResponse, woken: asyncio.Event, request: web.Request
) -> None:
    try:
        if not await _written(opened, response, opened.first()):
            _break(request)
            return
        while not opened.over:
            woken.clear()
            try:
                if not await _written(opened, response, opened.following()):
                    _break(request)
                    return
            except api_errors.FailureError as error:
                line = responses.encoded({"type": "ERROR", "object": error.status()})
                await response.write(line + b"\n")
                return
            await woken.wait()
        await response.write_eof()
    except ConnectionError:
        return  # The client left.


async def _written(opened: Watch, response: web.StreamResponse, lines: Iterator[bytes]) -> bool:
    """Write lines; False when an injected fault says that the stream breaks off here."""
    for line in list(lines):
        if opened.left is not None:
            if opened.left <= 0:
                return False
            opened.left -= 1
        await response.write(line)
    return opened.left is None or opened.left > 0


def _break(request: web.Request) -> None:
    if request.transport is not None:
        request.transport.abort()


def _opened(
    parts: services.Services, kind: kinds.Kind, info: requests.RequestInfo, accept: str
) -> Watch:
    query, store = info.query, parts.store
    passes = selectors.test(kind, query.get("labelSelector", ""), query.get("fieldSelector", ""))
    wanted = query.get("resourceVersion", "")
    initial = _wants_initial(query, wanted)
    version = store.version
    if wanted not in ("", "0"):
        asked = reads.version_of(wanted)
        if asked > store.version:
            raise api_errors.too_large(asked, store.version)
        # A version that was forgotten is reported inside the stream, as real API servers do.
        version = version if initial else asked
    now = parts.clock.monotonic()
    seconds = requests.number(query, "timeoutSeconds") or random.uniform(*LIFETIME_SECONDS)
    bookmarks = requests.flag(query, "allowWatchBookmarks")
    shown = (services.shown(kind, v) for v in store.list(kind.sort, info.namespace).items)
    return Watch(
        parts=parts,
        kind=kind,
        info=info,
        view=responses.view(accept),
        version=version,
        passes=passes,
        bookmarks=bookmarks,
        ends=now + seconds,
        initial=[item for item in shown if passes(item)] if initial else [],
        announce_initial=bookmarks and requests.flag(query, "sendInitialEvents"),
        left=parts.faults.stream_limit(info),
        next_bookmark=_next_bookmark(now, now + seconds),
    )


def _next_bookmark(now: float, ends: float) -> float:
    """Return when the next bookmark is due: every minute and once before the end, as upstream."""
    last = ends - LAST_BOOKMARK_SECONDS
    return min(now + BOOKMARK_SECONDS, last) if last > now else math.inf


def _wants_initial(query: Any, wanted: str) -> bool:
    if "sendInitialEvents" not in query:
        if query.get("resourceVersionMatch"):
            raise api_errors.bad_request(
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
            )
        return wanted in ("", "0")
    if query.get("resourceVersionMatch") != "NotOlderThan":
        raise api_errors.bad_request(
            "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        )
    return requests.flag(query, "sendInitialEvents")
