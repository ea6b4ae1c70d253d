"""A running extender with one busy node, and the hands of a scheduler and of an agent."""

import contextlib

from tests.extender import running_extender

START = 1782907510.0
UPDATED = "2026-07-01T12:05:00Z"
LATER = "2026-07-01T12:05:30Z"


class Beside(running_extender.Extender):
    """A running extender, one busy node, and the hands of a scheduler and of an agent."""

    async def filter(self, name, *nodes, **more):
        pod = self.make.pod(name, **{"requests": {"cpu": "4"}, **more})
        key = f"{pod['metadata']['namespace']}/{name}"
        if key not in self.server.objects["pods"]:
            self.server.put("pods", pod)
            await self.until(lambda: self.app.feeds.pods.get(key))
        body = {"Pod": pod, "Nodes": None, "NodeNames": list(nodes or ("n1",))}
        async with self.session.post(f"{self.app.url}/filter", json=body) as answer:
            return (await answer.json(content_type=None))["NodeNames"]

    async def preempt(self, name, node, *victims):
        meta = {node: {"Pods": [{"UID": f"uid-{victim}"} for victim in victims]}}
        pod = self.make.pod(name)
        pod["spec"]["priority"] = 10
        if self.app.feeds.reports.get(node).report.usage[0] > 10000:
            self.report("10")
            await self.until(lambda: self.app.feeds.reports.get(node).report.usage[0] == 10000)
        body = {"Pod": pod, "NodeNameToMetaVictims": meta}
        async with self.session.post(f"{self.app.url}/preempt", json=body) as answer:
            return await answer.json(content_type=None)

    def explanation(self, name, namespace="default"):
        return self.server.objects["scheduleexplanations"].get(f"{namespace}/{name}", {})

    def message(self, name, namespace="default"):
        return self.explanation(name, namespace).get("status", {}).get("failedMessage", "")

    def current(self, name, namespace="default"):
        facts = self.explanation(name, namespace).get("status", {}).get("conditions")
        if not isinstance(facts, list):
            return None
        (found,) = facts
        return found["status"], found["reason"]

    def told(self, name):
        """Return the reasons of the events about an explanation, in their order."""
        return [
            event["reason"]
            for event in self.server.events
            if (event["regarding"]["kind"], event["regarding"]["name"])
            == ("ScheduleExplanation", name)
        ]

    def report(self, cpu, updated=LATER):
        self.server.put("nodemetrics", self.make.metric("n1", cpu=cpu, updated=updated))

    async def page(self, path):
        async with self.session.get(self.app.health_url + path) as answer:
            return answer.status, await answer.json()


@contextlib.asynccontextmanager
async def opened(server, make, **options):
    """Such an extender that is ready."""
    server.put("nodes", make.node("n1"))
    server.put("nodemetrics", make.metric("n1", cpu="100", updated=UPDATED))
    async with running_extender.opened(Beside, server, make, START, **options) as running:
        yield running
