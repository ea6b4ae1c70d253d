"""What `koord dev` shows: a live view on a terminal, plain lines elsewhere."""

import sys

from rich import console, live

from cli import status, view
from kube import client as clients
from kube import errors
from process import clock as clocks

REFRESH_SECONDS = 1.0
LINES_SECONDS = 10.0
TITLE = "koord dev · Ctrl-C stops"


def say(text: str) -> None:
    """Print a line at once, also into a pipe."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


async def show(kube: clients.Client, clock: clocks.Clock, *, plain: bool) -> None:
    """Show the picture of the cluster for ever."""
    if plain:
        await _lines(kube, clock)
    else:
        await _live(kube, clock)


async def _lines(kube: clients.Client, clock: clocks.Clock) -> None:
    while True:
        await clock.sleep(LINES_SECONDS)
        try:
            for line in view.lines(await status.read(kube)):
                say(line)
        except errors.KubeError as error:
            say(f"the picture cannot be taken now: {error}")
        say("")


async def _live(kube: clients.Client, clock: clocks.Clock) -> None:
    with live.Live(console=console.Console(), auto_refresh=False, transient=True) as shown:
        while True:
            try:
                shown.update(view.render(await status.read(kube), TITLE), refresh=True)
            except errors.KubeError as error:
                shown.update(f"the picture cannot be taken now: {error}", refresh=True)
            await clock.sleep(REFRESH_SECONDS)
