"""A real Prometheus over samples that a test writes, which needs no time to pass."""

import asyncio
import contextlib
import pathlib
import shutil
import subprocess
import sys

import aiohttp

from deploy.image import packages
from process.http import ports
from process.runtime import clock as clocks
from simulator.processes import children

PROGRAMS = ("prometheus", "promtool")


def _installed():
    found = [shutil.which(name) for name in PROGRAMS]
    return tuple(map(pathlib.Path, found)) if all(found) else None


def obstacle():
    """Why there is no Prometheus on this machine, empty where there is one."""
    if _installed():
        return ""
    if reason := packages.obstacle():
        return reason
    try:
        packages.unpacked(["prometheus"])
    except packages.UnreachableError as error:
        return f"packages of Debian cannot be had: {str(error).splitlines()[-1]}"
    return ""


def programs():
    """Return the paths of prometheus and promtool, taken from Debian where they are missing."""
    return _installed() or tuple(
        packages.unpacked(["prometheus"]) / "usr/bin" / name for name in PROGRAMS
    )


def text(families):
    """Return OpenMetrics; `families` has type and rows by name, a row labels and its points."""
    lines = []
    for name, (kind, rows) in families.items():
        family = name.removesuffix("_total") if kind == "counter" else name
        lines.append(f"# TYPE {family} {kind}")
        for labels, points in rows:
            said = ",".join(f'{key}="{value}"' for key, value in labels.items())
            lines += [f"{name}{{{said}}} {value} {at:.3f}" for at, value in points]
    return "\n".join([*lines, "# EOF", ""])


@contextlib.asynccontextmanager
async def serving(folder, families):
    """Serve these samples; yields the address."""
    samples = folder / "samples.txt"
    samples.write_text(text(families))
    async with over(folder, samples) as url:
        yield url


@contextlib.asynccontextmanager
async def over(folder, samples):
    """Serve the samples of a file in OpenMetrics; yields the address."""
    program, tool = programs()
    data, settings = folder / "data", folder / "prometheus.yml"
    settings.write_text("scrape_configs: []\n")
    blocks = [tool, "tsdb", "create-blocks-from", "openmetrics", "-q", samples, data]
    await asyncio.to_thread(subprocess.run, blocks, check=True, capture_output=True)
    (port,) = ports.take(1)
    url = f"http://127.0.0.1:{port}"
    command = (
        str(program), f"--config.file={settings}", f"--storage.tsdb.path={data}",
        "--storage.tsdb.retention.time=100y", f"--web.listen-address=127.0.0.1:{port}",
    )  # fmt: skip
    child = await children.start("prometheus", command, folder)
    try:
        async with aiohttp.ClientSession() as session:

            async def says_yes():
                try:
                    async with session.get(f"{url}/-/ready") as answer:
                        return answer.status == 200
                except aiohttp.ClientConnectionError:
                    return False

            await children.ready(child, says_yes, clock=clocks.SystemClock())
        yield url
    finally:
        await child.stop()


if __name__ == "__main__":
    try:
        print(obstacle() or programs()[0])
    except packages.PackagesError as error:
        sys.exit(str(error))
