"""A neutral client for tests: plain requests, plain dictionaries, nothing of the product."""

import asyncio
import contextlib
import dataclasses
import json
import ssl

import aiohttp

from tests import patience

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
BODY_LIMIT = 64 * 1024 * 1024
PATIENCE = patience.SECONDS


class RefusedError(AssertionError):
    """The API server answered a call, that had to succeed, with an error."""


@dataclasses.dataclass(frozen=True)
class Answer:
    status: int
    body: dict
    headers: dict

    @property
    def reason(self):
        return self.body.get("reason")

    @property
    def message(self):
        return self.body.get("message", "")


class Watch:
    """An open watch; `next` returns one event."""

    def __init__(self, response):
        self._response = response

    async def next(self, timeout=PATIENCE):
        """Return the next event, or None at the end of the stream."""
        async with asyncio.timeout(timeout):
            line = await self._response.content.readline()
        return json.loads(line) if line else None

    async def until(self, predicate, timeout=PATIENCE):
        """Return the first event that satisfies the predicate."""
        async with asyncio.timeout(timeout):
            while True:
                event = await self.next(timeout)
                assert event is not None, "the watch ended"
                if predicate(event):
                    return event


class Api:
    """Calls to one API server as one user."""

    def __init__(self, session, server, token, headers=()):
        self._session = session
        self.server = server
        self._token = token
        self._headers = headers

    def as_user(self, token):
        return Api(self._session, self.server, token)

    def acting(self, user, *groups):
        """The same client, on behalf of somebody else."""
        headers = [("Impersonate-User", user), *(("Impersonate-Group", one) for one in groups)]
        return Api(self._session, self.server, self._token, headers)

    async def call(
        self, method, path, body=None, *, query=None, kind="application/json", accept=""
    ):
        headers = {"Content-Type": kind}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        if accept:
            headers["Accept"] = accept
        headers = [*headers.items(), *self._headers]
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        url = f"{self.server}{path}"
        async with self._session.request(
            method, url, data=data, params=query, headers=headers
        ) as response:
            text = await response.text()
        parsed = {}
        with contextlib.suppress(json.JSONDecodeError, RecursionError):
            parsed = json.loads(text)
        return Answer(response.status, parsed, dict(response.headers))

    async def must(self, method, path, body=None, **options):
        answer = await self.call(method, path, body, **options)
        if answer.status >= 300:
            raise RefusedError(f"{method} {path}: {answer.status} {answer.message or answer.body}")
        return answer.body

    async def get(self, path, **query):
        return await self.must("GET", path, query=query)

    async def post(self, path, body, **query):
        return await self.must("POST", path, body, query=query)

    async def put(self, path, body, **query):
        return await self.must("PUT", path, body, query=query)

    async def patch(self, path, body, kind=MERGE_PATCH, **query):
        return await self.must("PATCH", path, body, kind=kind, query=query)

    async def delete(self, path, **query):
        return await self.must("DELETE", path, query=query)

    @contextlib.asynccontextmanager
    async def watch(self, path, **query):
        headers = {"Authorization": f"Bearer {self._token}"}
        params = {"watch": "true", **query}
        async with self._session.get(
            f"{self.server}{path}", params=params, headers=headers
        ) as response:
            if response.status != 200:
                raise RefusedError(f"watch {path}: {response.status} {await response.text()}")
            yield Watch(response)

    async def wait_until(self, path, predicate, timeout=PATIENCE):
        """Return the object at `path` as soon as it satisfies the predicate; it may be None."""
        collection, name = path.rsplit("/", 1)
        current = None
        try:
            async with asyncio.timeout(timeout):
                while True:
                    answer = await self.call("GET", path)
                    current = answer.body if answer.status == 200 else None
                    if predicate(current):
                        return current
                    await self._change(collection, name, current)
        except TimeoutError:
            shown = json.dumps(current, indent=1)
            raise AssertionError(
                f"{path} did not change as expected in {timeout} s: {shown}"
            ) from None

    async def _change(self, collection, name, current):
        query = {"fieldSelector": f"metadata.name={name}", "timeoutSeconds": "2"}
        if current is not None:
            query["resourceVersion"] = current["metadata"]["resourceVersion"]
        with contextlib.suppress(TimeoutError):
            async with self.watch(collection, **query) as stream:
                await stream.next(1.0)


async def eventually(check, timeout=PATIENCE):
    """Return the first true answer of an async check; for what no watch tells."""
    async with asyncio.timeout(timeout):
        while True:
            if answer := await check():
                return answer
            await asyncio.sleep(0.05)


@contextlib.asynccontextmanager
async def connected(server, ca, token):
    """A client for this server that trusts this certificate authority only."""
    context = ssl.create_default_context(cadata=ca.decode())
    connector = aiohttp.TCPConnector(ssl=context, limit=0)
    timeout = aiohttp.ClientTimeout(total=None, connect=10)
    async with aiohttp.ClientSession(
        connector=connector, timeout=timeout, read_bufsize=BODY_LIMIT
    ) as session:
        yield Api(session, server, token)
