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
    """Series by a part of the query; a text is sent as it is.

    A value is a number, or a function of the moment that returns a number or None for a hole.
    """

    def __init__(self):
        self.series = {}
        self.text = None
        self.most_points = None
        """Over how many moments it answers; more of them are too much for it."""
        self.asked = []
        self.ranges = []
        self.headers = []

    async def answer(self, request):
        form = await request.post()
        query = form["query"]
        self.asked.append(query)
        self.headers.append(request.headers.get("Authorization"))
        if self.text is not None:
            return web.Response(text=self.text)
        rows = next((rows for part, rows in self.series.items() if part in query), [])
        if request.path.endswith("/query_range"):
            return self._over(form, rows)
        result = [{"metric": labels, "value": [0, str(value)]} for labels, value in rows]
        body = {"status": "success", "data": {"resultType": "vector", "result": result}}
        return web.json_response(body)

    def _over(self, form, rows):
        first, last, step = (float(form[name]) for name in ("start", "end", "step"))
        moments = [first + number * step for number in range(round((last - first) / step) + 1)]
        self.ranges.append((first, len(moments), step))
        if self.most_points is not None and len(moments) > self.most_points:
            body = {"status": "error", "errorType": "execution", "error": "too many samples"}
            return web.json_response(body, status=422)
        result = []
        for labels, value in rows:
            found = [(at, value(at) if callable(value) else value) for at in moments]
            points = [[at, str(figure)] for at, figure in found if figure is not None]
            if points:
                result.append({"metric": labels, "values": points})
        data = {"resultType": "matrix", "result": result}
        return web.json_response({"status": "success", "data": data})


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
