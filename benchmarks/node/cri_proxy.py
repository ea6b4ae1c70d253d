"""What the CRI proxy adds to a call: a runtime that answers at once, asked with and without it.

python -m benchmarks.node.cri_proxy [--rounds 8] [--calls 250]

Runtime, proxy and client are three processes. Within a round, calls go by turns through the proxy
and straight to the runtime, so that what else happens on the machine strikes both.
"""

import argparse
import asyncio
import os
import sys
import tempfile
import time
from pathlib import Path

from benchmarks import figures
from process.runtime import clock as clocks
from runtimeproxy.cri import messages
from simulator.processes import children
from tests.runtimeproxy import stand_in

_RUNTIME = "runtime"
_VERSION = messages.path("Version")
_WARM = 50
_GOAL = "goal 2 ms"


async def _serve(path: str) -> None:
    """Answer calls until the process is killed."""
    runtime = stand_in.Runtime(Path(path))
    await runtime.start()
    await asyncio.Event().wait()


async def _seconds(cri: stand_in.Kubelet) -> float:
    begin = time.perf_counter()
    await cri.call(_VERSION, b"")
    return time.perf_counter() - begin


def _is_there(socket: Path) -> bool:
    return socket.exists()


async def _started(name: str, folder: Path, socket: Path, *words: str) -> children.Child:
    child = await children.start(name, (sys.executable, "-m", *words), folder)

    async def listens() -> bool:
        return _is_there(socket)

    await children.ready(child, listens, clock=clocks.SystemClock())
    return child


async def _measure(rounds: int, calls: int, folder: Path) -> None:
    direct, proxied = folder / "runtime.sock", folder / "proxy.sock"
    runtime = await _started(_RUNTIME, folder, direct, __spec__.name, f"--serve={direct}")
    proxy = await _started(
        *("proxy", folder, proxied, "cli.main", "runtime-proxy"),
        f"--koord-runtimeproxy-endpoint={proxied}",
        f"--remote-runtime-service-endpoint={direct}",
        f"--hook-server-folder={folder / 'hookserver.d'}",
    )
    straight, through = stand_in.Kubelet(str(direct)), stand_in.Kubelet(str(proxied))
    added: dict[str, list[float]] = {"p50": [], "p99": []}
    work = []
    try:
        for cri in (straight, through):
            for _ in range(_WARM):
                await _seconds(cri)
        for _ in range(rounds):
            before = figures.cpu_seconds(proxy.pid)
            pairs = [(await _seconds(straight), await _seconds(through)) for _ in range(calls)]
            work.append((figures.cpu_seconds(proxy.pid) - before) / calls)
            without, beside = zip(*pairs, strict=True)
            for name, share in (("p50", 0.5), ("p99", 0.99)):
                more = figures.percentile(beside, share) - figures.percentile(without, share)
                added[name].append(more * 1e3)
    finally:
        straight.close()
        through.close()
        await proxy.kill()
        await runtime.kill()
    for name, values in added.items():
        what = f"what the CRI proxy adds to the {name} of a call"
        figures.show(figures.plain(f"F16.proxy.{name}", what, "ms", values, _GOAL))
    what = "processor time of the CRI proxy per call"
    figures.show(figures.plain("F16.proxy.cpu", what, "ms", [one * 1e3 for one in work]))


def main() -> None:
    """Measure, or be the runtime."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--calls", type=int, default=250)
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.serve:
        asyncio.run(_serve(chosen.serve))
        return
    with tempfile.TemporaryDirectory(prefix="koord-cri-") as folder:
        asyncio.run(_measure(chosen.rounds, chosen.calls, Path(folder)))


if __name__ == "__main__":
    os.environ.setdefault("PYTHONPATH", str(Path(__file__).parents[2]))
    main()
