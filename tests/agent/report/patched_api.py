"""An API server of which nothing but patches is asked."""

import contextlib

from aiohttp import web


@contextlib.asynccontextmanager
async def serving(patch):
    """Serve patches by a handler; the address is yielded."""
    pages = web.Application()
    pages.router.add_patch("/{path:.*}", patch)
    runner = web.AppRunner(pages)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


class Api:
    """Keeps what patches say, and refuses as a test says."""

    def __init__(self):
        self.statuses, self.bodies, self.accepted = [], [], []
        self.url = ""

    async def patch(self, request):
        """Answer one patch."""
        self.bodies.append((request.path, await request.json()))
        self.accepted.append(request.headers["Accept"])
        status = self.statuses.pop(0) if self.statuses else 200
        kind = {"kind": "Status", "status": "Failure", "code": status, "message": "planted"}
        return web.json_response(kind if status != 200 else {"metadata": {}}, status=status)
