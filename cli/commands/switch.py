"""`koord switch`: show the live switches, and set one after it has been confirmed."""

import argparse
import asyncio
import sys
from collections.abc import Mapping
from typing import Final

from agent.model import capability_matrix, live_switches
from api import names, resources
from cli import clusters
from cli.doctor import live_switches as told
from cli.output import answers, terminal
from kube.client import client as clients
from kube.client import errors
from process.runtime import clock as clocks
from process.runtime import entry

KNOWN: Final = told.KNOWN
DEFAULT: Final = "default"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `koord switch`."""
    parser.description = (
        f"Show the live switches of the ConfigMap {names.CONFIG_MAP_SWITCHES}, or set one. enforce "
        "acts, observe decides and only reports, off does nothing, default removes the switch so "
        "that the settings count. Every process follows within seconds. Exit code: 0 shown or set, "
        "1 not set or the API server cannot be reached, 2 bad arguments."
    )
    parser.add_argument(
        "switch",
        nargs="?",
        help=f"one of {', '.join(KNOWN)}, or agent.evictions, agent.nri, agent.STRATEGY",
    )
    parser.add_argument(
        "mode", nargs="?", choices=(*(mode.value for mode in live_switches.Mode), DEFAULT)
    )
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument("--dry-run", action="store_true", help="only say what would be done")
    clusters.add_arguments(parser)
    clusters.add_installation(parser)
    clusters.add_output(parser)
    parser.set_defaults(run=_run)


def _run(chosen: argparse.Namespace) -> int:
    problem = unknown(chosen.switch) if chosen.switch else ""
    if problem:
        terminal.warn(f"koord switch: {problem}")
        return entry.BAD_SETTINGS
    try:
        return asyncio.run(_switched(chosen))
    except errors.KubeError as error:
        terminal.warn(f"koord switch: {error}")
        return entry.FAILED


def unknown(key: str) -> str:
    """Say what is wrong with the name of a switch; empty when nothing is."""
    if key in KNOWN:
        return ""
    if key.startswith(f"{live_switches.KEY}."):
        mode = live_switches.Mode.OFF.value
        live = live_switches.read({key: mode}, live_switches.Live(), capability_matrix.STRATEGIES)
        return "; ".join(live.problems)
    return f"there is no switch {key}; there are {', '.join(KNOWN)}"


async def _switched(chosen: argparse.Namespace) -> int:
    access = await clusters.connect(chosen)
    async with clients.Client(
        access, clock=clocks.SystemClock(), user_agent="koord-switch"
    ) as kube:
        data = await read(kube, chosen.koord_namespace)
        if chosen.mode is None:
            show(data, chosen.switch or "", chosen.output)
            return entry.OK
        before, key, mode = data.get(chosen.switch, DEFAULT), chosen.switch, chosen.mode
        sentence = f"{key}: {before} -> {mode} on {clusters.described(chosen, access)}"
        if before == mode:
            terminal.say(f"{key} is {mode} already")
            return entry.OK
        if chosen.dry_run:
            terminal.say(f"would set {sentence}")
            return entry.OK
        if not chosen.yes and not await is_agreed(sentence):
            return entry.FAILED
        await set_mode(kube, chosen.koord_namespace, key, mode)
        terminal.say(f"{key} is {mode}; it was {before}")
        return entry.OK


async def read(kube: clients.Client, namespace: str) -> dict[str, str]:
    """Return the live switches; none where there is no ConfigMap."""
    try:
        found = await kube.get(resources.CONFIG_MAPS, names.CONFIG_MAP_SWITCHES, namespace)
    except errors.NotFound:
        return {}
    return {str(key): str(text) for key, text in (found.get("data") or {}).items()}


async def set_mode(kube: clients.Client, namespace: str, key: str, mode: str) -> None:
    """Set one switch, or remove it; other switches stay as they are."""
    value = None if mode == DEFAULT else mode
    body = {"data": {key: value}}
    try:
        await kube.patch(
            resources.CONFIG_MAPS, names.CONFIG_MAP_SWITCHES, body, namespace=namespace
        )
    except errors.NotFound:
        if value is None:
            return
        metadata = {"name": names.CONFIG_MAP_SWITCHES, "namespace": namespace}
        await kube.create(resources.CONFIG_MAPS, {"metadata": metadata, **body}, namespace)


def show(data: Mapping[str, str], only: str, output: str) -> None:
    """Print switches, those that are not set included."""
    rows = {key: data.get(key, DEFAULT) for key in (*KNOWN, *sorted({*data} - {*KNOWN}))}
    rows = {key: mode for key, mode in rows.items() if only in ("", key)}
    rows = rows or {only: DEFAULT}
    if answers.is_document(output):
        items = [
            {"name": key, "mode": mode, "of": KNOWN.get(key, "")} for key, mode in rows.items()
        ]
        answers.show(output, {"items": items})
        return
    width = max(len(key) for key in (*rows, "SWITCH"))
    terminal.lines([f"{'SWITCH':<{width}}  {'MODE':<8}  OF"])
    for key, mode in rows.items():
        shown = mode if len(mode.split()) < 2 else " or ".join(mode.split())
        terminal.lines([f"{key:<{width}}  {shown:<8}  {KNOWN.get(key, '')}".rstrip()])
    for problem in told.told(data, {})[1]:
        terminal.warn(f"note: {problem} (this changes nothing)")


async def is_agreed(sentence: str) -> bool:
    """Ask the person at the terminal."""
    if not sys.stdin.isatty():
        terminal.say("nothing was done: pass --yes, since there is no terminal to ask at")
        return False
    terminal.ask(f"set {sentence}? [y/N]")
    agreed = (await asyncio.to_thread(sys.stdin.readline)).strip().lower() in ("y", "yes")
    if not agreed:
        terminal.say("nothing was done")
    return agreed
