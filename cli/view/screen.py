"""What `koord dev` shows: a live view on a terminal, plain lines elsewhere."""

from rich import console, live

from cli.output import cells, terminal
from cli.view import overview_reader, tables
from kube.client import client as clients
from kube.client import errors
from process.runtime import clock as clocks

REFRESH_SECONDS = 1.0
LINES_SECONDS = 10.0
TITLE = "koord dev · Ctrl-C stops"


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
            terminal.say(*tables.lines(await overview_reader.read(kube)))
        except errors.KubeError as error:
            terminal.say(f"the picture cannot be taken now: {error}")
        terminal.say("")


async def _live(kube: clients.Client, clock: clocks.Clock) -> None:
    with live.Live(console=console.Console(), auto_refresh=False, transient=True) as shown:
        while True:
            try:
                shown.update(tables.render(await overview_reader.read(kube), TITLE), refresh=True)
            except errors.KubeError as error:
                failure = cells.cell(f"the picture cannot be taken now: {error}")
                shown.update(failure, refresh=True)
            await clock.sleep(REFRESH_SECONDS)
