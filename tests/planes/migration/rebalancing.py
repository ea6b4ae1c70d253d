"""A cluster whose reported load follows the pods that run on it, and the processes that move them.

Extender, manager and descheduler are processes of their own beside a real scheduler. Kubelets exist
only as a client that lets pods run, ends those that leave, and reports what each node uses.
"""

import asyncio
import contextlib
import json
import math
import time

from api import names, resources
from api.wire import durations
from process.runtime import supervise
from tests.planes import raw
from tests.planes.migration import migration_record
from tests.planes.processes import gate
from tests.planes.stage import LEASE_PATH, PATIENCE

MANAGER = (
    "--leader_election.lease_seconds=3",
    "--leader_election.renew_seconds=2",
    "--leader_election.retry_seconds=0.5",
    '--controllers=["reservation"]',
    '--reservations.schedulers=["default-scheduler"]',
)
DESCHEDULER = MANAGER[:3]
LEASES = tuple(
    resources.LEASES.path(names.NAMESPACE, name) for name in ("koord-manager", "koord-descheduler")
)
METRICS = resources.NODE_METRICS
DEPLOYMENTS = "apps/v1"
LOAD = "example.com/load"
"""The label of pods that says how many thousandths of a CPU they use while it is busy."""
IDLE, SYSTEM = 0.1, 500
"""The share of it that they use before, and what nodes use without pods."""
REPORT_SECONDS, RENEW_SECONDS = 0.5, 45.0


def configuration(world, *, most=6, per_node=2, **thresholds):
    """A configuration that looks at the nodes of a test every second."""
    levels = {"lowThresholds": {"cpu": 30}, "highThresholds": {"cpu": 60}, **thresholds}
    patient = {"timeout": "10s", "consecutiveAbnormalities": 2, "consecutiveNormalities": 1}
    arguments = {
        "LowNodeLoad": {"anomalyCondition": patient, **levels},
        "MigrationController": {
            "schedulerNames": ["default-scheduler"],
            "maxConcurrentReconciles": 2,
            "maxMigratingGlobally": most,
            "maxMigratingPerNode": per_node,
            "objectLimiters": {"workload": {"duration": "1s", "maxMigrating": 100}},
            "defaultJobTTL": "90s",
        },
    }
    return {
        "apiVersion": "descheduler/v1alpha2",
        "kind": "DeschedulerConfiguration",
        "deschedulingInterval": "1s",
        "nodeSelector": {"matchLabels": {"world": world}},
        "maxNoOfPodsToEvictPerNode": per_node,
        "profiles": [
            {
                "name": "test",
                "plugins": {
                    "deschedule": {"disabled": [{"name": "*"}]},
                    "balance": {"enabled": [{"name": "LowNodeLoad"}]},
                },
                "pluginConfig": [{"name": name, "args": args} for name, args in arguments.items()],
            }
        ],
    }


class Fleet:
    """The kubelets and agents of all nodes of a stage."""

    def __init__(self, stage, record):
        self.stage, self.record = stage, record
        self.busy = set()
        """Nodes on which pods are as busy as their label says."""
        self.all_busy = False
        self.reports = 0
        """How often every node has been looked at since the pods changed last."""
        self._seen, self._told = {}, {}
        self._handled = set()

    # -- kubelets ----------------------------------------------------------------------------

    async def run(self):
        """Let pods run and leave, and report, for ever."""
        async with supervise.Supervisor("fleet") as tasks:
            tasks.start("kubelets", self._kubelets)
            tasks.start("agents", self._agents)
            await tasks.stopped()

    async def _kubelets(self):
        while True:
            due = [pod for pod in self.record.pods.now.values() if self._is_due(pod)]
            await asyncio.gather(*map(self._handle, due))
            await asyncio.sleep(0.05)

    def _is_due(self, pod):
        metadata = pod["metadata"]
        if not pod["spec"].get("nodeName"):
            return False
        leaves = "deletionTimestamp" in metadata
        starts = migration_record.phase(pod) == "Pending"
        return (leaves or starts) and (metadata["uid"], leaves) not in self._handled

    async def _handle(self, pod):
        name, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
        leaves, path = "deletionTimestamp" in pod["metadata"], self.stage.path("pods", name)
        self._handled.add((uid, leaves))
        if leaves:
            body = {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}}
            answer = await self.stage.api.call("DELETE", path, body)
        else:
            ready = [{"type": "Ready", "status": "True"}]
            body = {"metadata": {"uid": uid}, "status": {"phase": "Running", "conditions": ready}}
            answer = await self.stage.api.call(
                "PATCH", f"{path}/status", body, kind=raw.STRATEGIC_PATCH
            )
        assert answer.status in (200, 404, 409), answer.message

    # -- agents ------------------------------------------------------------------------------

    async def _agents(self):
        while True:
            await self.report()
            await asyncio.sleep(REPORT_SECONDS)

    async def report(self):
        """Report the load of nodes where it has changed, or was told a while ago."""
        pods = {name: {} for name in self.stage.nodes}
        for pod in self.record.running():
            if pod["spec"]["nodeName"] in pods:
                pods[pod["spec"]["nodeName"]][pod["metadata"]["name"]] = self.use(pod)
        now = time.monotonic()
        due = [
            (name, used)
            for name, used in pods.items()
            if self._told.get(name) != used or now - self._seen.get(name, 0.0) > RENEW_SECONDS
        ]
        await asyncio.gather(*(self._report(name, used, now) for name, used in due))
        self.reports += 1

    async def _report(self, name, used, now):
        if name not in self._told:
            kind = {"apiVersion": METRICS.api_version, "kind": METRICS.kind}
            body = {**kind, "metadata": {"name": name}, "spec": {}}
            answer = await self.stage.api.call("POST", METRICS.path(), body)
            assert answer.status in (201, 409), answer.message
        whole = SYSTEM + sum(used.values())
        status = {
            "updateTime": durations.moment(time.time()),
            "nodeMetric": {
                "nodeUsage": {"resources": amounts(whole)},
                "systemUsage": {"resources": amounts(SYSTEM)},
            },
            "podsMetric": [
                {
                    "namespace": self.stage.namespace,
                    "name": pod,
                    "podUsage": {"resources": amounts(share)},
                }
                for pod, share in used.items()
            ],
        }
        path = METRICS.path(name=name, subresource="status")
        await self.stage.api.patch(path, {"status": status})
        self._told[name], self._seen[name] = used, now

    def use(self, pod):
        """What a pod uses, in thousandths of a CPU."""
        load = int(pod["metadata"].get("labels", {}).get(LOAD, "0"))
        is_busy = self.all_busy or pod["spec"]["nodeName"] in self.busy
        return int(load * (1.0 if is_busy else IDLE))

    def loads(self):
        """What nodes use now, in thousandths of a CPU."""
        found = dict.fromkeys(self.stage.nodes, SYSTEM)
        for pod in self.record.running():
            if pod["spec"]["nodeName"] in found:
                found[pod["spec"]["nodeName"]] += self.use(pod)
        return found

    async def remove(self):
        """Delete the reports."""
        for name in self._told:
            await self.stage.api.call("DELETE", METRICS.path(name=name))


def amounts(thousandths):
    """What uses so much CPU uses."""
    return {"cpu": f"{thousandths}m", "memory": "1Gi"}


class Stand:
    """Extender, scheduler, manager, and one or two deschedulers behind gates of their own."""

    def __init__(self, stage, pair, folder, record):
        self.stage, self.pair, self.record = stage, pair, record
        self.fleet = Fleet(stage, record)
        self._folder = folder
        self.manager = stage.process("manager-a", "manager", *MANAGER, serves=False)
        self.deschedulers, self.uplinks = {}, {}
        self._made = []

    def descheduler(self, letter, uplink, document):
        """Prepare a replica."""
        file = self._folder / f"descheduler-{letter}.yaml"
        file.write_text(json.dumps(document))
        flags = (
            *DESCHEDULER,
            f"--configuration={file}",
            f"--leader_election.identity=descheduler-{letter}",
        )
        name = f"descheduler-{letter}"
        self.uplinks[letter] = uplink
        self.deschedulers[letter] = self.stage.process(
            name, "descheduler", *flags, server=uplink.url, serves=False
        )

    async def kill(self, letter):
        """Kill a replica: what it had not sent is never sent."""
        self.uplinks[letter].hang_up()
        await self.deschedulers[letter].kill()

    async def leads(self, letter):
        """Tell whether a replica holds the lease and works."""
        return await self.deschedulers[letter].figure("koord_lease_leading") == 1

    async def rounds(self, letter, count):
        """Wait until a replica has run so many more rounds."""
        replica = self.deschedulers[letter]
        first = math.nan

        async def enough():
            nonlocal first
            now = await replica.figure("koord_descheduler_rounds_total", result="planned")
            # A busy replica may not answer at first.
            first = now if math.isnan(first) else first
            return now >= first + count

        await raw.eventually(enough, PATIENCE)

    # -- workloads ---------------------------------------------------------------------------

    async def nodes(self, *suffixes, **options):
        """Create nodes."""
        return await asyncio.gather(*(self.stage.node(one, **options) for one in suffixes))

    async def deployment(self, name, replicas, load, *, annotations=None, least=None, **spec):
        """Create a Deployment whose pods use so much; `least` of them may not be disrupted."""
        labels = {"app": name, LOAD: str(load)}
        pod = self.stage.pod_body(name, labels=labels, annotations=annotations, **spec)
        pod["spec"]["terminationGracePeriodSeconds"] = 30
        body = {
            "apiVersion": DEPLOYMENTS,
            "kind": "Deployment",
            "metadata": {"name": name},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": {"app": name}},
                "template": {"metadata": pod["metadata"], "spec": pod["spec"]},
            },
        }
        del pod["metadata"]["name"]
        await self._create("deployments", DEPLOYMENTS, name, body)
        if least is not None:
            spec = {"minAvailable": least, "selector": {"matchLabels": {"app": name}}}
            body = {"metadata": {"name": name}, "spec": spec}
            await self._create("poddisruptionbudgets", "policy/v1", name, body)

    async def _create(self, plural, group, name, body):
        await self.stage.api.post(self.stage.path(plural, group=group), body)
        self._made.append(self.stage.path(plural, name, group=group))

    async def run(self, name, count):
        """Wait until so many pods of a Deployment run."""
        saying = f"there are no {count} pods of {name}"
        await self.record.until(lambda: len(self.record.running(app=name)) == count, saying)

    # -- ends --------------------------------------------------------------------------------

    def rests(self):
        """Whether no job is open and no Reservation keeps anything."""
        return not self.record.open_jobs() and not self.record.held()

    async def at_rest(self):
        """Wait until no job is open and no Reservation keeps anything; see that all went well."""
        await self.record.until(self.rests, "jobs or Reservations are left")
        await self.record.up_to_date()
        assert self.rests(), self.record.story()
        problems = list(self.record.problems())
        assert not problems, problems

    async def remove(self):
        """Delete what the stand has made."""
        for path in self._made:
            await self.stage.api.call("DELETE", path, query={"propagationPolicy": "Background"})
        for kind in (self.record.jobs, self.record.reservations):
            for one in list(kind.now.values()):
                await self.stage.api.call("DELETE", f"{kind.path}/{one['metadata']['name']}")
        await self.fleet.remove()


@contextlib.asynccontextmanager
async def standing(stage, folder, document, replicas="a"):
    """All of them on a stage, which has no nodes yet; no descheduler runs yet."""
    for path in (*LEASES, LEASE_PATH):
        await stage.api.call("DELETE", path)
    async with contextlib.AsyncExitStack() as stack:
        record = await stack.enter_async_context(migration_record.opened(stage))
        stand = Stand(stage, await stage.pair("a"), folder, record)
        for letter in replicas:
            uplink = await stack.enter_async_context(
                gate.opened(stage.plane.server, stage.plane.ca)
            )
            stand.descheduler(letter, uplink, document)
        await stand.manager.start()
        await stand.manager.ready()
        await stand.pair.schedule(bind_timeout_seconds=5)
        try:
            async with supervise.Supervisor("stand") as fleet:
                fleet.spawn("fleet", stand.fleet.run())
                yield stand
        finally:
            for replica in stand.deschedulers.values():
                await replica.kill()
            await stand.remove()
