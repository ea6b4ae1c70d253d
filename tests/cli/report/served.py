"""An API server that lists what it is told, and a Prometheus that answers by parts of queries."""

import contextlib
import json

from aiohttp import web


class Plane:
    """Objects and lists by path; what is not named is not there."""

    def __init__(self):
        self.answers = {}

    async def answer(self, request):
        found = self.answers.get(request.path, 404)
        if isinstance(found, int):
            return web.json_response({"code": found, "message": "no"}, status=found)
        if isinstance(found, list):
            return web.json_response({"metadata": {"resourceVersion": "1"}, "items": found})
        return web.json_response(found)


class Prometheus:
    """Series by a part of the query; a text is sent as it is."""

    def __init__(self):
        self.series = {}
        self.text = None
        self.asked = []
        self.headers = []

    async def answer(self, request):
        query = (await request.post())["query"]
        self.asked.append(query)
        self.headers.append(request.headers.get("Authorization"))
        if self.text is not None:
            return web.Response(text=self.text)
        rows = next((rows for part, rows in self.series.items() if part in query), [])
        result = [{"metric": labels, "value": [0, str(value)]} for labels, value in rows]
        body = {"status": "success", "data": {"resultType": "vector", "result": result}}
        return web.json_response(body)


@contextlib.asynccontextmanager
async def serving(made):
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", made.answer)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def kubeconfig(folder, url):
    """Write a kubeconfig without credentials."""
    body = {
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    }  # fmt: skip
    file = folder / "kubeconfig"
    file.write_text(json.dumps(body))
    return file
