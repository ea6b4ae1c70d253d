"""The committed plain manifests, put together as kustomize would, without it."""

import pathlib

from api import resources
from tests.planes import raw
from tests.planes.install import manifests

DEPLOY = pathlib.Path(__file__).parents[3] / "deploy"
MANIFESTS = DEPLOY / "manifests"
WORKLOADS = ("Deployment", "DaemonSet")
NAMES = ("kustomization.yaml", "Kustomization")


def kustomization(folder):
    """Return the kustomization of a folder."""
    (found,) = (folder / name for name in NAMES if (folder / name).is_file())
    (document,) = manifests.read(found.read_text())
    return document


def files(folder):
    """Return every file that a kustomization brings in."""
    for name in kustomization(folder)["resources"]:
        path = (folder / name).resolve()
        if path.is_dir():
            yield from files(path)
        else:
            yield path


def documents(mode):
    """Return the objects of one way to install, without custom resource definitions."""
    return [
        document
        for path in files(MANIFESTS / mode)
        if path.parent.name != "crds"
        for document in manifests.read(path.read_text())
    ]


def of_kind(found, *kinds):
    """Return the objects of these kinds."""
    return [document for document in found if document["kind"] in kinds]


def named(found, kind, name):
    """Return the one object of this kind and name."""
    (document,) = (one for one in of_kind(found, kind) if one["metadata"]["name"] == name)
    return document


def containers(found):
    """Return the workload, the pod and the container of every container."""
    for workload in of_kind(found, *WORKLOADS):
        pod = workload["spec"]["template"]["spec"]
        for container in pod["containers"]:
            yield workload, pod, container


def selects(selector, labels):
    """Whether labels have everything that a selector wants."""
    return selector.items() <= labels.items()


PLURALS = {
    "NetworkPolicy": "networkpolicies",
    "PriorityClass": "priorityclasses",
    "ValidatingAdmissionPolicy": "validatingadmissionpolicies",
}


async def apply(api, document):
    """Apply an object as an administrator does."""
    group, _, version = document["apiVersion"].rpartition("/")
    kind, metadata = document["kind"], document["metadata"]
    plural = PLURALS.get(kind, f"{kind.lower()}s")
    resource = resources.Resource(group, version, plural, kind, "namespace" in metadata)
    path = resource.path(metadata.get("namespace", ""), metadata["name"])
    query = {"fieldManager": "person", "force": "true"}
    await api.must("PATCH", path, document, kind=raw.APPLY_PATCH, query=query)
