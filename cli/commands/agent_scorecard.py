"""`koord agent scorecard`: what the agents did each day, or would have done."""

import argparse
import asyncio
import dataclasses
import http
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import aiohttp

from agent import settings as agent_settings
from agent.report import scorecard, scorekeeper
from api import resources
from cli import clusters, reading
from cli.doctor import support_bundle
from cli.doctor.checkup import facts
from cli.output import answers, terminal
from cli.view import scorecards
from kube.client import client as clients
from kube.client import errors, failures
from process.runtime import clock as clocks
from process.runtime import entry

AT_ONCE: Final = 16
SECONDS: Final = 10.0


@dataclasses.dataclass(frozen=True, slots=True)
class Wanted:
    """Whose days are meant, and how many."""

    namespace: str
    node: str = ""
    """One node; empty for all."""
    days: int = 1


def main(arguments: Sequence[str]) -> int:
    """Print the scorecards; 0 when every agent that was asked has answered, else 1."""
    parser = argparse.ArgumentParser(
        prog="koord agent scorecard",
        description="What the agents did each day, or would have done where they only observe: "
        "of all nodes together, of one node, or of this host.",
    )
    clusters.add_arguments(parser)
    clusters.add_installation(parser)
    parser.add_argument("--node", default="", help="of this node alone")
    parser.add_argument(
        "--here", action="store_true", help="of this host, from the agent's own folder"
    )
    parser.add_argument(
        "--state", type=Path, default=agent_settings.HostSettings().state, help="that folder"
    )
    parser.add_argument("--days", type=int, default=1, help="how many of the latest days")
    clusters.add_output(parser)
    chosen = parser.parse_args(arguments)
    if not 0 < chosen.days <= scorecard.KEEP_DAYS:
        parser.error(f"--days {chosen.days}: 1 to {scorecard.KEEP_DAYS} are kept")
    try:
        cards, problems = _here(chosen) if chosen.here else asyncio.run(_cluster(chosen))
    except errors.KubeError as error:
        terminal.warn(f"koord agent scorecard: {error}")
        return entry.FAILED
    _show(chosen.output, scorecards.together(cards)[: chosen.days], problems)
    return entry.FAILED if problems else entry.OK


def _show(output: str, days: Sequence[dict[str, Any]], problems: Sequence[str]) -> None:
    if answers.is_document(output):
        answers.show(output, {"days": days, "problems": problems})
        return
    terminal.lines(scorecards.lines(days))
    for problem in problems:
        terminal.warn(f"koord agent scorecard: {problem}")


def _here(chosen: argparse.Namespace) -> tuple[list[list[Any]], list[str]]:
    folder = chosen.state / scorekeeper.FOLDER
    days, problems = scorekeeper.kept(folder, chosen.days)
    if not days and not problems:
        problems = [f"{folder}: no agent has kept a scorecard here"]
    return [[day.as_json() for day in days]], problems


async def _cluster(chosen: argparse.Namespace) -> tuple[list[list[Any]], list[str]]:
    access, listening = await clusters.reach(chosen)
    wanted = Wanted(chosen.koord_namespace, chosen.node, chosen.days)
    if listening.agents:
        return await listened(listening.agents, wanted)
    clock = clocks.SystemClock()
    async with clients.Client(access, clock=clock, user_agent="koord-scorecard") as kube:
        return await read(kube, wanted)


async def listened(
    agents: Mapping[str, str], wanted: Wanted
) -> tuple[list[list[scorecards.Day]], list[str]]:
    """Ask the agents of a `koord dev` at their addresses, by node."""
    asked = {node: url for node, url in agents.items() if wanted.node in ("", node)}
    if not asked:
        return [], [f"no agent runs on node {wanted.node}"]
    limit = aiohttp.ClientTimeout(total=SECONDS)
    async with aiohttp.ClientSession(timeout=limit) as session:
        answers = await asyncio.gather(
            *(_page(session, node, url, wanted) for node, url in asked.items())
        )
    cards = [answer for answer in answers if not isinstance(answer, str)]
    return cards, [answer for answer in answers if isinstance(answer, str)]


async def _page(
    session: aiohttp.ClientSession, node: str, url: str, wanted: Wanted
) -> list[scorecards.Day] | str:
    try:
        async with session.get(f"{url}/scorecard", params={"days": str(wanted.days)}) as answer:
            if answer.status != http.HTTPStatus.OK:
                return f"{node}: {url} answers {answer.status}"
            return scorecards.read(await answer.read())
    except (aiohttp.ClientError, TimeoutError, *reading.UNREADABLE) as error:
        return f"{node}: {url}: {failures.unanswered(error)}"


async def read(kube: clients.Client, wanted: Wanted) -> tuple[list[list[Any]], list[str]]:
    """Ask all agents, a few at a time; return their days, and who did not answer and why."""
    pods = await kube.list(resources.PODS, wanted.namespace, labels=support_bundle.SELECTOR)
    agents = [
        pod
        for pod in pods.items
        if facts.component(pod) == "agent"
        and wanted.node in ("", (pod.get("spec") or {}).get("nodeName"))
    ]
    if not agents:
        where = f"on node {wanted.node}" if wanted.node else f"in {wanted.namespace}"
        return [], [f"no agent runs {where}"]
    few = asyncio.Semaphore(AT_ONCE)
    answers = await asyncio.gather(*(_ask(kube, pod, wanted, few) for pod in agents))
    cards = [answer for answer in answers if not isinstance(answer, str)]
    return cards, [answer for answer in answers if isinstance(answer, str)]


async def _ask(
    kube: clients.Client, pod: dict[str, Any], wanted: Wanted, few: asyncio.Semaphore
) -> list[Any] | str:
    """Return the days of one agent, or why there are none."""
    name = f"{facts.name(pod)}:{support_bundle.HEALTH_PORTS['agent']}"
    path = resources.PODS.path(wanted.namespace, name, "proxy/scorecard")
    async with few:
        try:
            text = await kube.read(path, {"days": str(wanted.days)}, seconds=SECONDS)
            return scorecards.read(text)
        except (errors.KubeError, *reading.UNREADABLE) as error:
            return f"{facts.name(pod)}: {error}"
