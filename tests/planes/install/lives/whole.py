"""One whole life: what happens every day, what happens seldom, and what is left at the end."""

import contextlib
import dataclasses

from api import names, resources
from tests.planes import raw
from tests.planes.install import chart, examining, installation, removal
from tests.planes.install.lives import days, events, managing, moving, nodes, scheduling
from tests.planes.processes import audit, services

VALUES = (
    "image.repository=registry.example.com/koord",
    "namespace.create=true",
    "clusterSettings.colocation.enable=true",
    "clusterSettings.colocation.metricReportIntervalSeconds=2",
    "clusterSettings.colocation.metricAggregateDurationSeconds=10",
    "clusterSettings.resourceThreshold.clusterStrategy.enable=true",
    "agent.devices.enabled=true",
    "agent.settings.devices.intervalSeconds=1",
)
ASKS_KUBELETS = 1, 33
"""The first release whose kubelets let the agent ask for their configuration alone."""
IN_PLACE = chart.DEPLOY / "scheduler" / "in-place.yaml"
SCHEDULERS = {"beside": "koord-scheduler", "in-place": "default-scheduler"}
OTHERS_GATE = "example.com/other"
ON_THE_HOST = {"beside": (), "in-place": (f"--scheduler-config={IN_PLACE}",)}


@dataclasses.dataclass(frozen=True)
class Life:
    """What happened from the first apply to the last delete."""

    mode: str
    documents: list
    mutated: dict
    bound: dict
    findings: dict
    calls: list
    called: dict
    removed: str
    tested: str
    left: list


async def rare(it, mode):
    """What happens seldom, so that every permission is shown to be needed."""
    await scheduling.hot_node(it)
    await scheduling.foreign_bind(it)
    await scheduling.preempted(it)
    await scheduling.strangers_to_the_extender(it)
    await scheduling.reserved(it, SCHEDULERS[mode])
    await moving.by_rounds(it)
    await events.repeated_event(it, "scheduler")
    await events.repeated_event(it, "agent")
    await nodes.strangers_to_the_agent(it)
    await nodes.silent_kubelet(it)
    await nodes.devices(it)
    await unfinished(it)
    await nodes.topology(it)
    if mode == "in-place":
        await scheduling.renewed_token(it)
    if mode == "beside":
        # All others but the extender are the same in both.
        await managing.objects_of_no_node(it)
        await managing.numa_zones(it)
        await managing.network_domains(it)
        await managing.node_group(it)
        await managing.returned(it)
        await managing.quotas_of_every_group(it)
        await managing.gang(it)
        await managing.advice(it)
        await moving.by_people(it)
        await events.repeated_event(it, "descheduler")
        await events.repeated_event(it, "manager")
        await managing.silent_webhook(it)
    await nodes.handed_over(it)


async def unfinished(it):
    """What an uninstall in the middle of a reservation, or after a change of mode, finds."""
    await scheduling.waiting_reservation(it)
    # As if written in the last moment, about a pod that is still there.
    kind = resources.SCHEDULE_EXPLANATIONS
    why = {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": "job", "labels": {names.LABEL_CREATED_BY: "koord-extender"}},
        "spec": {"questionObjectKey": f"{days.USERS}/job"},
    }
    await it.api.post(kind.path(days.USERS), why)
    await gated(it)
    lease = {"metadata": {"name": "koord-scheduler"}, "spec": {}}
    await it.api.call("POST", resources.LEASES.path(days.NAMESPACE), lease)


async def gated(it):
    """A pod that waits behind a gate of ours, which nobody opens before the other one."""
    gates = [{"name": gate} for gate in (names.GATE_QUOTA, OTHERS_GATE)]
    body = days.pod_body("gated", {"cpu": "1"}, schedulingGates=gates)
    await it.api.post(resources.PODS.path(days.USERS), body)
    condition = {"type": names.CONDITION_QUOTA, "status": "False", "reason": "WaitingInLine"}
    path = resources.PODS.path(days.USERS, "gated", "status")
    await it.api.patch(path, {"status": {"conditions": [condition]}})


async def still_waits(it):
    """Return what of ours the pod has still to wait for."""
    pod = await it.api.get(resources.PODS.path(days.USERS, "gated"))
    marks = [*pod["spec"]["schedulingGates"], *pod["status"].get("conditions", ())]
    found = {mark.get("name") or mark["type"] for mark in marks}
    return sorted(found & {names.GATE_QUOTA, names.CONDITION_QUOTA})


def for_release(version):
    """The values without which an agent cannot tell how its node is built, by release.

    Where it may not ask the kubelet, it has to read what the kubelet notes in its folder.
    """
    asks = tuple(map(int, version.split(".")[:2])) >= ASKS_KUBELETS
    return () if asks else ("agent.kubeletState=true",)


async def lived(plane, mode, kubectl, folder, version):
    """Install, use, examine and uninstall; returns what was seen."""
    callers = f"networkPolicy.apiServerBlocks={{{services.own_address()}/32}}"
    values = (*VALUES, *for_release(version), callers, f"scheduler.mode={mode}")
    text = chart.template(*values, version=version, literal=(moving.VALUE,))
    start = audit.mark(plane.audit_log)
    async with (
        raw.connected(plane.server, plane.ca, plane.token) as api,
        contextlib.AsyncExitStack() as stack,
    ):
        it = installation.Installation(plane, api, kubectl, folder, stack)
        await it.install(text, mode)
        mutated, bound = await days.used(it)
        findings = await examining.examined(it, *ON_THE_HOST[mode])
        tested = await examining.tested(it)
        await rare(it, mode)
        removed = await removal.uninstall(it)
        left = [*await removal.left(it), *await still_waits(it)]
        await days.cleared(it)
    calls = audit.read(plane.audit_log, start)
    return Life(
        mode, it.documents, mutated, bound, findings, calls, it.called, removed, tested, left
    )
