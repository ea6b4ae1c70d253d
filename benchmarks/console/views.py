"""How long the console takes for its first view and for interactions, in a large cluster.

python -m benchmarks.console.views [--nodes 5000] [--pods 150000] [--rounds 5]

The stores of a manager are filled with so many nodes and pods, through the projections that its
reflectors use. `server` is the time from a request to the last byte of its answer, over HTTP, when
nothing is prepared. `browser` is what a person waits in Chromium without a window: from opening the
address until the heat map is painted, and from a key or a choice until the frame with the change.
`reader` is the same in a Chromium that tells a screen reader of every element.
Without Chromium only the server is measured.
"""

import argparse
import asyncio
import contextlib
import resource
import time
from collections.abc import AsyncIterator, Sequence

import aiohttp

from benchmarks import figures
from benchmarks.console import fleet
from kube.client import access, client
from manager.settings import ConsoleServerSettings, ConsoleSettings
from process.http import health
from process.runtime import clock as clocks
from simulator.apiserver import apiserver
from tests.planes.programs import browser

_GOAL_VIEW, _GOAL_ACTION = "at most 2000 ms", "at most 100 ms"
_PATHS = (
    ("nodes", "nodes"),
    ("node", f"nodes/{fleet.node_name(7)}"),
    ("pending", "pending"),
    ("pending-search", "pending?q=app-77"),
    ("quotas", "quotas"),
    ("devices", "devices"),
    ("gangs", "gangs"),
    ("reservations", "reservations"),
    ("migrations", "migrations"),
    ("scorecard", "scorecard"),
)
_PAGES = (
    ("pending", "Pending"),
    ("quotas", "Elastic"),
    ("devices", "Devices"),
    ("gangs", "Gangs"),
    ("reservations", "Reservations"),
    ("migrations", "Migrations"),
    ("scorecard", "Scorecard"),
)
_SHOWN = "document.querySelectorAll('.heat > div').length >= %d"
_FRAME = (
    "new Promise(done => requestAnimationFrame(() => { const after = new MessageChannel();"
    " after.port1.onmessage = done; after.port2.postMessage(0) }))"
)
"""Resolves right after the next frame was laid out and painted."""
_CHANGE = """(async () => {
  const field = [...document.querySelectorAll('%s')][%d];
  const started = performance.now();
  field.value = '%s';
  field.dispatchEvent(new Event('%s', {bubbles: true}));
  await %s;
  return performance.now() - started;
})()"""
_OPEN = """(async () => {
  const started = performance.now();
  location.hash = '#/%s';
  const end = started + 20000;
  while (!document.querySelector('main h1')?.textContent.startsWith('%s')
         || !document.querySelector('%s')) {
    if (performance.now() > end) throw new Error(document.body.innerText.slice(0, 500));
    await new Promise(done => setTimeout(done, 1));
  }
  await %s;
  return performance.now() - started;
})()"""
_ANSWERED = """(async () => {
  const main = document.querySelector('main > :not(.away)');
  const shown = () => [...main.querySelectorAll('table')].map((one) => one.innerText).join();
  const old = shown();
  const started = performance.now();
  %s;
  const end = started + 20000;
  while (shown() === old) {
    if (performance.now() > end) throw new Error(document.body.innerText.slice(0, 500));
    await new Promise(done => setTimeout(done, 1));
  }
  await %s;
  return performance.now() - started;
})()"""
_TYPED = """const field = main.querySelector('.tools input');
  field.value = '%s'; field.dispatchEvent(new Event('input', {bubbles: true}))"""
_PRESSED = "main.querySelector('%s').click()"
_TABLE = (
    ("sort", _PRESSED % "thead th:nth-child(5) button"),
    ("table-next", _PRESSED % ".pager button:nth-child(2)"),
)
_LISTS = {
    "pending": (("pending-search", _TYPED % "app-77"), ("pending-search-cleared", _TYPED % ""),
                ("pending-next", _PRESSED % ".pager button:nth-child(2)")),
    "quotas": (("quota-search", _TYPED % "7"), ("quota-search-cleared", _TYPED % "")),
}  # fmt: skip
"""What people do on the pages, with the script that does it."""
_ACTIONS = (
    ("colour", (".tools select", 0, "memory-used", "change")),
    ("order", (".tools select", 2, "high", "change")),
    ("zone", (".tools select", 1, "zone-1", "change")),
    ("every-zone", (".tools select", 1, "", "change")),
    ("search", (".tools input", 0, "pool-3", "input")),
    ("search-cleared", (".tools input", 0, "", "input")),
)


@contextlib.asynccontextmanager
async def _serving(size: fleet.Size) -> AsyncIterator[str]:
    clock = clocks.SystemClock()
    server = ConsoleServerSettings(port=0, linger_seconds=0.0)
    settings = ConsoleSettings(enabled=True, viewer="everybody", server=server)
    async with apiserver.running(clock=clock) as plane:
        who = access.Access(plane.url, plane.ca, access.StaticToken(plane.token))
        async with client.Client(who, clock=clock) as api:
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            started = time.perf_counter()
            found = fleet.built(api, clock, size, settings)
            grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
            print(f"filled in {time.perf_counter() - started:.1f} s, {grown / 1024:.0f} MiB")
            config = ("koordinator-system", "slo-controller-config")
            async with found.console.serving(config, health.Health()) as url:
                yield url


async def _server(url: str, rounds: int) -> list[figures.Figure]:
    shown = []
    async with aiohttp.ClientSession(auto_decompress=False) as session:
        for name, path in _PATHS:
            taken, size = [], 0
            for _ in range(rounds):
                # What is prepared for a second is not what the first one waits for.
                await asyncio.sleep(1.05)
                started = time.perf_counter()
                async with session.get(f"{url}/api/{path}") as answer:
                    size = len(await answer.read())
                    assert answer.status == 200, await answer.text()
                taken.append(1000 * (time.perf_counter() - started))
            what = f"answer of the page {name}, {size / 1024:.0f} KiB on the wire"
            shown.append(figures.plain(f"console.server.{name}", what, "ms", taken, _GOAL_ACTION))
    return shown


async def _browser(
    url: str, size: fleet.Size, rounds: int, kind: str, *, accessible: bool
) -> list[figures.Figure]:
    program = browser.program()
    if program is None:
        print("there is no Chromium: the browser is left out")
        return []
    first: list[float] = []
    acted: dict[str, list[float]] = {}
    async with browser.tab(program, accessible=accessible) as tab:
        await tab.appear(width=1440, height=1000)
        for _ in range(rounds):
            await tab.go("about:blank")
            await asyncio.sleep(1.05)
            started = time.perf_counter()
            await tab.go(f"{url}/")
            await tab.until(_SHOWN % size.nodes)
            await tab.run(_FRAME)
            first.append(1000 * (time.perf_counter() - started))
            await asyncio.sleep(0.5)
            await _act(tab, acted)
    shown = [
        figures.plain(f"console.{kind}.first", "opening until all nodes are painted", "ms", first,
                      _GOAL_VIEW)
    ]  # fmt: skip
    return shown + [
        figures.plain(f"console.{kind}.{name}", f"{name} until the next frame", "ms", taken,
                      _GOAL_ACTION)
        for name, taken in acted.items()
    ]  # fmt: skip


async def _act(tab: browser.Tab, acted: dict[str, list[float]]) -> None:
    for name, (where, number, value, event) in _ACTIONS:
        taken = await tab.run(_CHANGE % (where, number, value, event, _FRAME))
        acted.setdefault(name, []).append(taken)
    await tab.run("document.querySelector('.heat > div').focus()")
    script = (
        "(async () => { const started = performance.now();"
        " document.activeElement.dispatchEvent(new KeyboardEvent('keydown',"
        " {key: 'ArrowDown', bubbles: true}));"
        f" await {_FRAME}; return performance.now() - started }})()"
    )
    acted.setdefault("arrow-key", []).append(await tab.run(script))
    await _press(tab, acted, _TABLE)
    node = f"nodes/{fleet.node_name(7)}"
    opened = [(node, "Node", "main .fall")]
    opened += [(page, title, "main tbody th, main dl") for page, title in _PAGES]
    for page, title, sign in opened:
        taken = await tab.run(_OPEN % (page, title, sign, _FRAME))
        name = "node" if page == node else page
        acted.setdefault(f"open-{name}", []).append(taken)
        await _press(tab, acted, _LISTS.get(page, ()))
    taken = await tab.run(_OPEN % ("nodes", "Nodes", ".heat", _FRAME))
    acted.setdefault("back-to-nodes", []).append(taken)


async def _press(
    tab: browser.Tab, acted: dict[str, list[float]], actions: Sequence[tuple[str, str]]
) -> None:
    for name, script in actions:
        acted.setdefault(name, []).append(await tab.run(_ANSWERED % (script, _FRAME)))


async def _measure(size: fleet.Size, rounds: int) -> None:
    async with _serving(size) as url:
        figures.show(*await _server(url, rounds))
        figures.show(*await _browser(url, size, rounds, "browser", accessible=False))
        figures.show(*await _browser(url, size, rounds, "reader", accessible=True))


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=150_000)
    parser.add_argument("--rounds", type=int, default=5)
    chosen = parser.parse_args(argv)
    size = fleet.Size(chosen.nodes, chosen.pods, min(5000, chosen.pods // 30))
    asyncio.run(_measure(size, chosen.rounds))


if __name__ == "__main__":
    main()
