"""Whether everything is installed, in one version, and running."""

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from api import names
from api.kubernetes import crds
from cli.doctor.checkup import facts, findings
from cli.doctor.checkup.findings import Severity, Trap
from domain import wording

OLDEST: Final = (1, 28)
NEWEST_TRIED: Final = (1, 37)
COMPONENTS: Final = ("webhook", "manager")
"""What every installation has; the scheduler may stand on the control plane instead."""
CRD_REMEDY: Final = "run `koord render crds | kubectl apply --server-side -f -`"

TOO_OLD = Trap(
    "version.too-old", Severity.ERROR, "Kubernetes is older than 1.28", "upgrade the cluster"
)
UNTRIED = Trap(
    "version.untried", Severity.INFO, "Kubernetes is newer than what this release was tried on",
    "read the notes of a newer release of Koord before relying on it",
)  # fmt: skip
CGROUP_V1 = Trap(
    "version.cgroup-v1", Severity.INFO,
    "Kubelets from 1.35 on refuse to start on cgroup v1 unless failCgroupV1 is false",
    "move the nodes to cgroup v2 before their kubelets reach 1.35",
)  # fmt: skip
CRD_MISSING = Trap(
    "crd.missing", Severity.ERROR, "A custom resource definition is not installed", CRD_REMEDY
)
CRD_NOT_SERVED = Trap(
    "crd.not-established", Severity.ERROR,
    "A custom resource definition is installed and not served",
    "read its conditions: `kubectl describe crd NAME`",
)  # fmt: skip
CRD_VERSION = Trap(
    "crd.version-missing", Severity.ERROR,
    "A definition does not serve or store the version that this release reads", CRD_REMEDY,
)  # fmt: skip
CRD_OLD = Trap(
    "crd.other-release", Severity.WARNING,
    "A definition of ours is not that of this release: some fields would be dropped", CRD_REMEDY,
)  # fmt: skip
CRD_FOREIGN = Trap(
    "crd.foreign", Severity.INFO,
    "Another installation owns the CRD; it is used as it is and never removed by us",
    "nothing; but if a Helm release holds it, uninstalling that release deletes it with all its "
    "objects: see docs/takeover-from-koordinator.md first",
)  # fmt: skip
CRD_FOREIGN_FIELDS = Trap(
    "crd.foreign-fields", Severity.WARNING,
    "A CRD of another installation lacks fields that this release writes: the API "
    "server drops them",
    "apply our definitions over it, or upgrade what installed it",
)  # fmt: skip
NOT_INSTALLED = Trap(
    "workload.missing", Severity.ERROR, "A part of the installation is missing",
    "install the chart, or apply the manifests again",
)  # fmt: skip
STOPPED = Trap(
    "workload.stopped", Severity.ERROR, "A Deployment is scaled to 0",
    "scale it up: `kubectl -n NAMESPACE scale deployment NAME --replicas 2`",
)  # fmt: skip
NOT_READY = Trap(
    "workload.not-ready", Severity.ERROR, "None of a workload's pods is ready",
    "look at its pods: `kubectl -n NAMESPACE describe pod`",
)  # fmt: skip
PARTLY_READY = Trap(
    "workload.partly-ready", Severity.WARNING, "Some pods of a workload are not ready or not "
    "updated", "wait for the rollout: `kubectl rollout status`",
)  # fmt: skip
MIXED = Trap(
    "workload.mixed-images", Severity.WARNING, "Parts of the installation run different images",
    "finish the upgrade: every part from one release; two may be mixed while it lasts",
)  # fmt: skip

VERSION_TRAPS = (TOO_OLD, UNTRIED, CGROUP_V1)
CRD_TRAPS = (
    CRD_MISSING, CRD_NOT_SERVED, CRD_VERSION, CRD_OLD, CRD_FOREIGN, CRD_FOREIGN_FIELDS,
)  # fmt: skip
WORKLOAD_TRAPS = (NOT_INSTALLED, STOPPED, NOT_READY, PARTLY_READY, MIXED)


def versions(known: facts.Facts) -> Iterator[findings.Finding]:
    """Look whether the system runs on this Kubernetes."""
    version = facts.given(known.version)
    number = (version.major, version.minor)
    if number < OLDEST:
        yield TOO_OLD.found(f"Kubernetes is {version.text}")
    if number > NEWEST_TRIED:
        yield UNTRIED.found(f"Kubernetes is {version.text}, tried up to 1.{NEWEST_TRIED[1]}")
    if number in ((1, 33), (1, 34)):
        yield CGROUP_V1.found(f"Kubernetes is {version.text}; its next kubelets need cgroup v2")


def definitions(known: facts.Facts) -> Iterator[findings.Finding]:
    """Look whether the custom resources are served as this release needs them."""
    installed = facts.given(known.crds)
    for wanted in _definitions():
        name = wanted["metadata"]["name"]
        found = installed.get(name)
        if found is None:
            yield CRD_MISSING.found(f"{name} is not installed", name)
            continue
        yield from _definition(name, wanted, found)


@functools.cache
def _definitions() -> tuple[facts.Raw, ...]:
    """Make our definitions once: they are built from all models."""
    return tuple(crds.definitions())


def _definition(name: str, wanted: facts.Raw, found: facts.Raw) -> Iterator[findings.Finding]:
    conditions = {c.get("type"): c for c in facts.stated(found.get("status") or {}, "conditions")}
    established = conditions.get("Established") or {}
    if established.get("status") != "True":
        refused = conditions.get("NamesAccepted") or {}
        reason = refused.get("message") or established.get("message") or "it was just created"
        yield CRD_NOT_SERVED.found(f"{name} is not served: {reason}", name)
    versions = {v.get("name"): v for v in facts.stated(found.get("spec") or {}, "versions")}
    lacking = []
    for version in wanted["spec"]["versions"]:
        served = versions.get(version["name"])
        if served is None or not served.get("served"):
            yield CRD_VERSION.found(f"{name} does not serve {version['name']}", name)
            continue
        if version["storage"] and not served.get("storage"):
            stored = next((n for n, v in versions.items() if v.get("storage")), "nothing")
            yield CRD_VERSION.found(f"{name} stores {stored}, not {version['name']}", name)
        lacking += missing_fields(_schema(version), _schema(served))
    if facts.is_ours(found):
        if lacking:
            fields = findings.some(lacking, 3)
            yield CRD_OLD.found(f"{name} lacks {fields}: it is of another release", name)
        return
    who = installer(found)
    if lacking:
        fields = findings.some(lacking, 3)
        yield CRD_FOREIGN_FIELDS.found(f"{name}, installed by {who}, lacks {fields}", name)
    else:
        yield CRD_FOREIGN.found(f"{name} was installed by {who}", name)


def installer(thing: facts.Raw) -> str:
    """Say who created an object, as far as it tells."""
    release = facts.meta(thing, "annotations").get("meta.helm.sh/release-name")
    if release:
        return f"Helm release {release}"
    managers = [str(m.get("manager")) for m in _managed(thing) if not m.get("subresource")]
    return managers[0] if managers else "another client"


def _managed(thing: facts.Raw) -> Sequence[facts.Raw]:
    return tuple((thing.get("metadata") or {}).get("managedFields") or ())


def _schema(version: facts.Raw) -> facts.Raw:
    schema: facts.Raw = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    return schema


def missing_fields(wanted: facts.Raw, found: facts.Raw, path: str = "") -> list[str]:
    """Return the fields of one schema that another one would drop."""
    if not found.get("properties") and not found.get("items"):
        # Free-form: nothing is dropped below here where unknown fields are kept or maps are.
        keeps = found.get(crds.PRESERVE) or found.get("additionalProperties", False) is not False
        if keeps or not wanted.get("properties"):
            return []
    missing: list[str] = []
    there: Mapping[str, Any] = found.get("properties") or {}
    for name, schema in (wanted.get("properties") or {}).items():
        if path == "" and name in ("metadata", "apiVersion", "kind"):
            continue
        below = f"{path}.{name}" if path else name
        if name in there:
            missing += missing_fields(schema, there[name], below)
        elif not found.get(crds.PRESERVE):
            missing.append(below)
    if wanted.get("items") and found.get("items"):
        missing += missing_fields(wanted["items"], found["items"], f"{path}[]")
    return missing


def workloads(known: facts.Facts) -> Iterator[findings.Finding]:
    """Look whether our Deployments and the DaemonSet run, in one version."""
    deployments = [d for d in facts.given(known.deployments) if _is_part(known, d)]
    daemons = [d for d in facts.given(known.daemon_sets) if _is_part(known, d)]
    there = {facts.component(workload) for workload in (*deployments, *daemons)}
    for component in (*COMPONENTS, "agent"):
        if component not in there:
            kind = "DaemonSet" if component == "agent" else "Deployment"
            yield NOT_INSTALLED.found(
                f"{known.namespace} has no {kind} with {names.LABEL_COMPONENT}={component}",
                f"{known.namespace}/koord-{component}",
            )
    for deployment in deployments:
        yield from readiness("Deployment", deployment)
    for daemon in daemons:
        yield from readiness("DaemonSet", daemon)
    yield from _mixed((*deployments, *daemons))


def _is_part(known: facts.Facts, workload: facts.Raw) -> bool:
    namespace = (workload.get("metadata") or {}).get("namespace")
    return facts.is_ours(workload) and namespace == known.namespace


def readiness(kind: str, workload: facts.Raw) -> Iterator[findings.Finding]:
    """Look whether the pods of a Deployment or DaemonSet are ready."""
    spec, status = workload.get("spec") or {}, workload.get("status") or {}
    if kind == "Deployment":
        wanted = int(spec.get("replicas", 1))
        if not wanted:
            name = facts.key(workload)
            yield STOPPED.found(f"Deployment {name} is scaled to 0", name)
        counts = status.get("readyReplicas"), status.get("updatedReplicas")
    else:
        wanted = int(status.get("desiredNumberScheduled") or 0)
        counts = status.get("numberReady"), status.get("updatedNumberScheduled")
    yield from _ready(kind, workload, wanted, *counts)


def _ready(
    kind: str, workload: facts.Raw, wanted: int, ready: int | None, updated: int | None
) -> Iterator[findings.Finding]:
    name, ready, updated = facts.key(workload), int(ready or 0), int(updated or 0)
    if wanted and not ready:
        yield NOT_READY.found(f"{kind} {name}: none of {wanted} pods is ready", name)
    elif ready < wanted:
        yield PARTLY_READY.found(f"{kind} {name}: {_share(ready, wanted)} ready", name)
    elif updated < wanted:
        yield PARTLY_READY.found(f"{kind} {name}: {_share(updated, wanted)} updated", name)


def _share(some: int, wanted: int) -> str:
    return f"{some} of {wording.count(wanted, 'pod', 'pods')} {wording.form(some, 'is', 'are')}"


def _mixed(workloads: Sequence[facts.Raw]) -> Iterator[findings.Finding]:
    # The scheduler's pod also holds the stock kube-scheduler, which has a version of its own.
    used: dict[str, list[str]] = {}
    for workload in workloads:
        for image in facts.images(workload):
            if "kube-scheduler" not in image:
                used.setdefault(image, []).append(facts.name(workload))
    if len(used) > 1:
        listed = "; ".join(f"{image} in {', '.join(at)}" for image, at in sorted(used.items()))
        yield MIXED.found(f"several images are in use: {listed}")


CHECKS = (
    findings.Check(
        "version", "the version of Kubernetes is supported", VERSION_TRAPS, versions
    ),
    findings.Check(
        "crd", "every custom resource is served as this release needs it", CRD_TRAPS, definitions
    ),
    findings.Check(
        "workload", "every part of the installation runs, in one version", WORKLOAD_TRAPS, workloads
    ),
)  # fmt: skip
