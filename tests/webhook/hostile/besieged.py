"""A webhook's listener in a process of its own, with the settings that a chart gives it."""

import asyncio
import contextlib
import json
import sys
from pathlib import Path

import uvloop
from aiohttp import web

from api.koordinator import colocation
from process.configuration import switches
from process.http import fast_path, server
from process.runtime import metrics
from webhook import handlers, review
from webhook import settings as webhook_settings

PROFILE = colocation.read_profile(
    {
        "metadata": {"name": "batch"},
        "spec": {"selector": {"matchLabels": {"colocate": "yes"}}, "qosClass": "BE"},
    }
)


async def _main(folder: Path, changes: dict[str, object]) -> None:
    picture = review.Picture(
        profiles=(PROFILE,), namespaces={"default": {}}, priority_classes={}, draw=lambda _: 0
    )
    figures = metrics.Registry()
    live = switches.Switches("webhook", switches.Mode.ENFORCE)
    reviews = handlers.Admission(lambda: picture, figures, live)
    tls = {"certFile": str(folder / "tls.crt"), "keyFile": str(folder / "tls.key")}
    chosen = webhook_settings.ReviewServer.model_validate(
        {"port": 0, "host": "0.0.0.0", "tls": tls, "announceSeconds": 0, **changes}
    )
    application = web.Application(client_max_size=chosen.max_body_bytes)
    application.add_routes(reviews.routes())
    application[fast_path.ROUTES] = reviews.short_way()
    async with server.running_site(application, chosen, registry=figures) as site:
        print(site.port, flush=True)
        # Asked over a pipe, since the attack is against the listener.
        loop = asyncio.get_running_loop()
        while await loop.run_in_executor(None, sys.stdin.readline):
            names = ("connections", "cut_connections_total", "refused_connections_total")
            found = {n: figures.value(f"koord_server_{n}", {"server": "server"}) for n in names}
            print(json.dumps(found), flush=True)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        uvloop.run(_main(Path(sys.argv[1]), json.loads(sys.argv[2])))
