"""What schedules the pods of the teams: kube-scheduler alone, or all of our processes beside it."""

import contextlib
import dataclasses
import re
from collections.abc import AsyncIterator, Mapping

import aiohttp

from api import resources
from api.kubernetes import scheduler_config
from benchmarks.admission import reviewers
from benchmarks.plane import extenders, managers, rig

STOCK, NONE, QUOTAS = "stock", "none", "quotas"
"""kube-scheduler alone; with us and no quota; with us and quotas."""
VARIANTS = (STOCK, NONE, QUOTAS)
_CONTROLLERS = ("quotastatus", "quotadefaults", "quotaprofile")
"""Nodes that are only objects have no agents to look after."""
_CONFIGURATION = "koord-webhook"


@dataclasses.dataclass(frozen=True, slots=True)
class Programs:
    """Our processes while they run; none of them beside a stock scheduler."""

    extender_url: str = ""
    pids: Mapping[str, int] = dataclasses.field(default_factory=dict)
    metrics_urls: tuple[str, ...] = ()

    def configuration(self, queries_per_second: int) -> dict[str, object]:
        """Return the configuration of kube-scheduler that calls these processes."""
        options = scheduler_config.Options(
            extender_url=self.extender_url, queries_per_second=queries_per_second
        )
        return scheduler_config.render(options)

    async def counters(self, names: re.Pattern[str]) -> dict[str, float]:
        """Return the counters of all processes whose names match from the beginning."""
        found: dict[str, float] = {}
        for url in self.metrics_urls:
            async with aiohttp.ClientSession() as session, session.get(url) as answer:
                for line in (await answer.text()).splitlines():
                    if names.match(line):
                        name, _, value = line.rpartition(" ")
                        found[name] = found.get(name, 0.0) + float(value)
        return found


@contextlib.asynccontextmanager
async def running(made: rig.Rig, variant: str) -> AsyncIterator[Programs]:
    """Run what a variant needs beside kube-scheduler."""
    if variant == STOCK:
        yield Programs()
        return
    folder = made.workdir / "ours"
    folder.mkdir(exist_ok=True)
    login = made.plane.write_kubeconfig(folder / "kubeconfig", rig.USER)
    async with contextlib.AsyncExitStack() as stack:
        # What the webhook registers stays when it stops, and the API server would go on asking.
        stack.push_async_callback(_withdraw, made)
        webhook = await stack.enter_async_context(reviewers.ours(made))
        manager = await stack.enter_async_context(managers.ours(folder, login, _CONTROLLERS))
        extender = await stack.enter_async_context(extenders.ours(folder, login))
        yield Programs(
            extender.url,
            {"extender": extender.pid, "manager": manager.pid, "webhook": webhook.pid},
            (f"{extender.health}/metrics", manager.metrics_url, webhook.metrics_url),
        )


async def _withdraw(made: rig.Rig) -> None:
    for resource in (resources.MUTATING_WEBHOOKS, resources.VALIDATING_WEBHOOKS):
        await made.call("DELETE", resource.path(name=_CONFIGURATION))
