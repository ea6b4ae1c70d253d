"""The two webhooks that are compared: ours, and a minimal one in Go that decides nothing."""

import base64
import contextlib
import dataclasses
import json
import sys
import time
from collections.abc import AsyncIterator
from typing import Any

from api import names, resources
from benchmarks.plane import extenders, golang, rig
from certs import issue
from process.http import ports
from process.runtime import clock as clocks
from simulator.processes import children

REVIEWED, PLAIN, MINIMAL = "reviewed", "plain", "minimal"
"""Namespaces whose pods go through our webhook, through none, and through the minimal one."""
_PATIENCE = 60.0
_CONFIGURATION = "minimal"


@dataclasses.dataclass(frozen=True, slots=True)
class Webhook:
    """A running webhook."""

    url: str
    pid: int
    ca: bytes
    metrics_url: str = ""


@contextlib.asynccontextmanager
async def ours(made: rig.Rig) -> AsyncIterator[Webhook]:
    """Run our webhook as a process of its own, registered by address."""
    port, health = ports.take(2)
    login = made.plane.write_kubeconfig(made.workdir / "webhook-login.json")
    command = (
        *(sys.executable, "-m", "webhook", f"--kubeconfig={login}"),
        *("--server.host=127.0.0.1", f"--server.port={port}"),
        *("--server.announceSeconds=0", "--server.lingerSeconds=0"),
        *("--health.host=127.0.0.1", f"--health.port={health}", "--registration.url=self"),
        *('--certificates.names=["127.0.0.1"]', f"--certificates.folder={made.workdir / 'served'}"),
    )
    child = await children.start("webhook", command, made.workdir)
    try:

        async def registered() -> bool:
            path = resources.VALIDATING_WEBHOOKS.path(name="koord-webhook")
            with contextlib.suppress(RuntimeError):
                return bool(json.loads(await made.call("GET", path))["webhooks"])
            return False

        await children.ready(
            child, registered, clock=clocks.SystemClock(), timeout_seconds=_PATIENCE
        )
        path = resources.MUTATING_WEBHOOKS.path(name="koord-webhook")
        found = json.loads(await made.call("GET", path))
        ca = base64.b64decode(found["webhooks"][0]["clientConfig"]["caBundle"])
        metrics_url = f"http://127.0.0.1:{health}/metrics"
        yield Webhook(f"https://127.0.0.1:{port}", child.pid, ca, metrics_url)
    finally:
        await child.stop()


@contextlib.asynccontextmanager
async def minimal(made: rig.Rig) -> AsyncIterator[Webhook]:
    """Run the minimal webhook in Go, asked twice about the pods of one namespace."""
    port = ports.take(1)[0]
    now = time.time()
    signer = issue.authority("bench", now)
    pair = issue.leaf(signer, issue.Subject("minimal", ips=("127.0.0.1",)), now)
    certificate, key = made.workdir / "minimal.crt", made.workdir / "minimal.key"
    certificate.write_bytes(pair.certificate)
    key.write_bytes(pair.key)
    command = (
        *(str(golang.program("gowebhook")), f"-listen=127.0.0.1:{port}"),
        *(f"-certificate={certificate}", f"-key={key}"),
    )
    child = await children.start("gowebhook", command, made.workdir)
    try:
        await children.ready(child, lambda: extenders.listens(port), clock=clocks.SystemClock())
        url = f"https://127.0.0.1:{port}"
        for resource in (resources.MUTATING_WEBHOOKS, resources.VALIDATING_WEBHOOKS):
            await made.call("POST", resource.path(), _registered(resource, url, signer.certificate))
        yield Webhook(url, child.pid, signer.certificate)
    finally:
        await child.stop()


def _registered(resource: resources.Resource, url: str, ca: bytes) -> dict[str, Any]:
    """Return what asks about the pods of one namespace, as ours asks about all others."""
    is_mutating = resource.kind.startswith("Mutating")
    webhook: dict[str, Any] = {
        "name": "minimal.bench.example.com",
        "clientConfig": {
            "url": url + ("/mutate-pod" if is_mutating else "/validate-pod"),
            "caBundle": base64.b64encode(ca).decode(),
        },
        "rules": [
            {
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "operations": ["CREATE"],
                "resources": ["pods"],
                "scope": "Namespaced",
            }
        ],
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Fail",
        "timeoutSeconds": 10,
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": MINIMAL}},
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": resource.kind,
        "metadata": {"name": _CONFIGURATION},
        "webhooks": [webhook],
    }


async def furnish(made: rig.Rig) -> None:
    """Create the namespaces; only one of them is not hidden from our webhook."""
    hidden = {"control-plane": "bench"}
    for name, labels in ((names.NAMESPACE, {}), (REVIEWED, {}), (PLAIN, hidden), (MINIMAL, hidden)):
        metadata = {"name": name, "labels": labels}
        await made.call("POST", resources.NAMESPACES.path(), {"metadata": metadata})
    for name in (REVIEWED, PLAIN, MINIMAL):
        with contextlib.suppress(RuntimeError):
            account = {"metadata": {"name": "default"}}
            await made.call("POST", resources.SERVICE_ACCOUNTS.path(name), account)
