"""What manifests install, run on this machine as a kubelet would run it.

Arguments, environment and settings come from the pod templates; only addresses, paths and the
login differ. The pods themselves are made by the controllers of the control plane: they are what
the tokens are bound to.
"""

import asyncio
import contextlib
import dataclasses
import json
import os
import pathlib
import re
import sys

import aiohttp

from process.runtime import clock as clocks
from simulator.processes import children
from tests.planes import definitions, raw
from tests.planes.processes import accounts

PATIENCE = 60.0
PROBE = aiohttp.ClientTimeout(total=2)
REFERENCE = re.compile(r"\$\(([A-Za-z_][A-Za-z0-9_]*)\)")


class ManifestError(AssertionError):
    """The manifests do not fit together."""


@dataclasses.dataclass(frozen=True)
class Place:
    """Where and as whom a container runs here."""

    folder: pathlib.Path
    """Its files go here."""
    program: tuple[str, ...]
    """What stands for the entry point of the image."""
    flags: tuple[str, ...] = ()
    """Addresses, paths and the login, by flags that win over everything else."""
    environment: tuple[tuple[str, str], ...] = ()
    """The same by variables, for what the template sets by variables."""
    fields: tuple[tuple[str, str], ...] = ()
    """What the downward API would tell, by the path of the field."""
    edit: object = None
    """Called with the name and the text of each mounted file; returns the text to use."""


OURS = (sys.executable, "-m", "cli")


class Manifests:
    """Rendered objects by kind and name."""

    def __init__(self, documents):
        self.documents = documents
        self._by_key = {(one["kind"], one["metadata"]["name"]): one for one in documents}

    def get(self, kind, name):
        """Return the one object of this kind and name."""
        found = self._by_key.get((kind, name))
        if found is None:
            raise ManifestError(f"there is no {kind} {name}")
        return found

    def template(self, kind, name):
        """Return the pod template of a workload."""
        return self.get(kind, name)["spec"]["template"]

    def command(self, template, container, place):
        """Return the command line of a container of a pod template, ready to run here."""
        (chosen,) = (one for one in template["spec"]["containers"] if one["name"] == container)
        paths = self._files(template["spec"], chosen, place)
        arguments = []
        for word in chosen.get("args", ()):
            for inside, outside in paths.items():
                word = word.replace(inside, str(outside))
            arguments.append(word)
        variables = {"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1"}
        variables |= self._environment(chosen, dict(place.fields)) | dict(place.environment)
        assigned = (f"{name}={value}" for name, value in variables.items())
        return ("env", "-i", *assigned, *place.program, *arguments, *place.flags)

    def _files(self, spec, container, place):
        """Write mounted ConfigMaps; returns folders here by folders there."""
        volumes = {one["name"]: one for one in spec.get("volumes", ())}
        paths = {}
        for mount in container.get("volumeMounts", ()):
            volume = volumes[mount["name"]]
            if "configMap" not in volume:
                continue
            folder = place.folder / mount["name"]
            folder.mkdir(parents=True, exist_ok=True)
            data = self.get("ConfigMap", volume["configMap"]["name"])["data"]
            for name, text in data.items():
                (folder / name).write_text(place.edit(name, text) if place.edit else text)
            paths[mount["mountPath"]] = folder
        return paths

    @staticmethod
    def _environment(container, fields):
        found = {}
        for one in container.get("env", ()):
            if "value" in one:
                value = REFERENCE.sub(lambda match: found[match.group(1)], one["value"])
            else:
                value = fields[one["valueFrom"]["fieldRef"]["fieldPath"]]
            found[one["name"]] = value
        return found


async def apply(api, kubectl, documents):
    """Apply as people do, and wait until all definitions are served."""
    # Everything else is in the namespace.
    ordered = sorted(documents, key=lambda one: one["kind"] != "Namespace")
    await kubectl("apply", "--server-side", "-f", "-", stdin=listed(ordered))
    await served(api, documents)


def listed(documents):
    """One document that holds all of them, which is quickly written and read."""
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": documents})


async def served(api, documents):
    """Wait until all definitions among these documents are served."""
    for document in documents:
        if document["kind"] == "CustomResourceDefinition":
            await definitions.served(api, document, PATIENCE)


async def pod_of(api, namespace, component):
    """Return the name of a pod that the controllers made for this part of the installation."""
    path = f"/api/v1/namespaces/{namespace}/pods"
    label = f"app.kubernetes.io/component={component}"

    async def there():
        found = (await api.get(path, labelSelector=label))["items"]
        return sorted(one["metadata"]["name"] for one in found if not gone(one))

    return (await raw.eventually(there, PATIENCE))[0]


def gone(pod):
    """Whether a pod is on its way out."""
    return "deletionTimestamp" in pod["metadata"]


async def login(plane, api, template, component, folder, *, placed=None):
    """Write a kubeconfig with a token bound to a pod of this template; returns path and pod.

    The pod is handed to `placed` first: what a kubelet asks for says which node it is on.
    """
    spec = template["spec"]
    if not spec.get("automountServiceAccountToken"):
        raise ManifestError(f"{component} gets no token although it calls the API server")
    namespace = "koordinator-system"
    pod = await pod_of(api, namespace, component)
    if placed is not None:
        await placed(pod)
    token = await accounts.token(api, namespace, spec["serviceAccountName"], pod=pod)
    folder.mkdir(parents=True, exist_ok=True)
    return plane.write_kubeconfig(folder / "login.json", token=token), pod, token


async def start(stack, name, command, folder, probe):
    """Start a process that ends with the stack, and wait until its probe answers 200."""
    child = await children.start(name, command, folder)
    stack.push_async_callback(child.stop, 20.0)

    async def ready():
        with contextlib.suppress(aiohttp.ClientError, TimeoutError):
            async with (
                aiohttp.ClientSession(timeout=PROBE) as session,
                session.get(probe, ssl=False) as answer,
            ):
                return answer.status == 200
        return False

    await children.ready(child, ready, clock=clocks.SystemClock(), timeout_seconds=PATIENCE)
    return child


async def ended(*command):
    """Run a command to its end; returns its status and what it said."""
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    try:
        said, _ = await asyncio.wait_for(process.communicate(), PATIENCE)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return process.returncode, said.decode()
