"""The end of an installation: what is removed by whom, and what would be left of it."""

from api import names, resources
from tests.planes.install import installation, installed

BATCH = (names.BATCH_CPU, names.BATCH_MEMORY)
MINE = installation.MINE
UNINSTALL = "pre-delete"
# Some are lists of everything, some are served twice.
UNLISTED = frozenset({"componentstatuses", "events", "events.events.k8s.io"})


def traces(node):
    """Return what we wrote on a node."""
    status, metadata = node["status"], node["metadata"]
    for amounts in (status.get("capacity", {}), status.get("allocatable", {})):
        yield from (name for name in BATCH if name in amounts)
    for marks in (metadata.get("labels", {}), metadata.get("annotations", {})):
        yield from (name for name in marks if "koordinator.sh/" in name)


async def uninstall(it):
    """Do what Helm does: run the hook, then delete what was installed; returns what it said."""
    await installed.apply(
        it.api, it.kubectl, [d for d in it.documents if installation.is_hook(d, UNINSTALL)]
    )
    template = it.manifests.template("Job", "koord-uninstall")
    folder = it.folder / "uninstall"
    login, _, _ = await installed.login(it.plane, it.api, template, "uninstall", folder)
    here = installed.Place(folder, (*installed.OURS,), (f"--kubeconfig={login}",))
    command = it.manifests.command(template, "uninstall", here)
    status, said = await installed.ended(*command)
    assert status == 0, said
    await deleted(it)
    return said


async def deleted(it):
    """Delete what was applied, as `helm uninstall` and `kubectl delete` do."""
    kept = ("CustomResourceDefinition", "Namespace")
    text = installed.listed([d for d in it.documents if d["kind"] not in kept])
    words = ("delete", "--ignore-not-found", "--wait=false", "-f", "-")
    await it.kubectl(*words, stdin=text)


async def left(it):
    """What is still there of ours, but for definitions and the namespace."""
    words = await it.kubectl("api-resources", "--verbs=list", "-o", "name")
    kinds = ",".join(sorted(set(words.split()) - UNLISTED))
    found = await it.kubectl("get", kinds, "-A", "-l", MINE, "-o", "name")
    left = [
        line
        for line in found.split()
        if not line.startswith(("customresourcedefinition.", "namespace/"))
    ]
    for resource in (resources.MUTATING_WEBHOOKS, resources.VALIDATING_WEBHOOKS):
        answer = await it.api.call("GET", resource.path(name="koord-webhook"))
        left += [answer.body] if answer.status == 200 else []
    for resource in (
        resources.NODE_METRICS, resources.NODE_SLOS, resources.SCHEDULE_EXPLANATIONS,
    ):  # fmt: skip
        left += (await it.api.get(resource.path()))["items"]
    left += (await it.api.get(resources.LEASES.path(names.NAMESPACE)))["items"]
    for node in (await it.api.get(resources.NODES.path()))["items"]:
        left += [(node["metadata"]["name"], trace) for trace in traces(node)]
    return left
