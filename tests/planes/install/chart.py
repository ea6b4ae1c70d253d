"""The Helm chart as Helm renders it, and the plain manifests that are made from it.

`python -m tests.planes.install.chart` writes what is committed below deploy/; with the word `helm`
it only builds Helm, where it can.
"""

import pathlib
import re
import subprocess
import sys

import yaml

from agent.device_daemon import output as device_daemon_output
from api import names
from api.koordinator.metadata import protected_metadata
from descheduler.migration.plan import reservation_template
from domain.devices.requests import accelerators
from manager.model import projections
from manager.reservations import priorities, stand_in
from tests.e2e import binaries
from webhook import registry
from webhook import settings as webhook_settings
from webhook.registration import configurations

HELM = "3.22.0"
DEPLOY = pathlib.Path(__file__).parents[3] / "deploy"
CHART = DEPLOY / "helm" / "koord"
WEBHOOKS = CHART / "files" / "webhooks.yaml"
POLICIES = CHART / "files" / "policies.yaml"
MANIFESTS = DEPLOY / "manifests"
NAMESPACE = "koordinator-system"
MODES = ("beside", "in-place")
KUBERNETES = "1.36.3"
# Nobody can pull these by mistake: people name their own in a kustomization.
IMAGE = "image.invalid/koord"
SCHEDULER_TAG = "set-the-version-of-your-cluster"
PLAIN = (
    f"image.repository={IMAGE}",
    f"scheduler.image.tag={SCHEDULER_TAG}",
    "namespace.create=true",
    "crds.install=false",
    "uninstall.hook=false",
    "tests.enabled=false",
)
HEAD = "# Made from the Helm chart by `make manifests`; change the chart, not this file.\n"
PARTS = {
    "scheduler": "scheduler",
    "webhook": "webhook",
    "manager": "manager",
    "descheduler": "descheduler",
    "agent": "agent",
    "device-daemon": "device-daemon",
}
OF_A_MODE = ("scheduler", "descheduler")
"""Parts that depend on how the extender is installed."""
COMPONENT = "device-daemon"
"""The part of the plain manifests that people add where they want it."""


class HelmError(Exception):
    """Helm refused; the text is what it said."""


def program():
    """Return Helm, built where it is not yet."""
    return binaries.tool("helm", "helm.sh/helm/v3", HELM, "helm.sh/helm/v3/cmd/helm")


def helm(*words):
    """Run Helm and return what it prints."""
    done = subprocess.run([program(), *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = done.stdout + done.stderr
        raise HelmError("\n".join(line for line in said.splitlines() if "walk.go" not in line))
    return done.stdout


def template(*assignments, namespace=NAMESPACE, version=KUBERNETES, literal=()):
    """Render the chart with these values, written as for `--set`; returns the text.

    Values in `literal` are written as for `--set-json`.
    """
    settings = [word for one in assignments for word in ("--set", one)]
    settings += [word for one in literal for word in ("--set-json", one)]
    place = ("--namespace", namespace, "--kube-version", version)
    return helm("template", "koord", str(CHART), *place, *settings)


def documents(text):
    """Return the objects of a text with several documents."""
    # The definitions are long, and the reader in C is ten times as fast.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return [document for document in yaml.load_all(text, loader) if document]


def key(document):
    """What tells an object from all others."""
    metadata = document["metadata"]
    return document["kind"], metadata.get("namespace", ""), metadata["name"]


def files():
    """Return every file that is made from the chart, by its path below deploy/manifests/."""
    made = {}
    for mode in MODES:
        for name, text in _split(template(*PLAIN, f"scheduler.mode={mode}")).items():
            folder = mode if name in OF_A_MODE else "common"
            path = f"{folder}/{name}.yaml"
            if made.setdefault(path, text) != text:
                raise AssertionError(f"{path} differs between the ways to install")
    added = _split(template(*PLAIN, "deviceDaemon.enabled=true"))[COMPONENT]
    made[f"components/{COMPONENT}/{COMPONENT}.yaml"] = added
    return made


def webhooks():
    """Return the webhook configurations as the webhook itself would write them."""
    options = webhook_settings.RegistrationSettings()
    kinds = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
    items = [configurations.document(kind, options, NAMESPACE, b"") for kind in kinds]
    return "# Written by `make manifests` from the webhook's own routes.\n" + yaml.safe_dump(
        {"items": items}, sort_keys=False
    )


def policies():
    """Return the names that the admission policies of the chart are made of."""
    routes = registry.ROUTES.items()
    found = {
        "pods": {
            "never": [*protected_metadata.NEVER_CREATED],
            "allocations": [*protected_metadata.ALLOCATIONS],
            "devicePlugins": [*protected_metadata.DEVICE_PLUGINS],
            "recorded": [names.ANNOTATION_EXTENDED_RESOURCE_SPEC],
            "signed": [names.ANNOTATION_PROFILES, names.ANNOTATION_CHANGES],
            "record": names.ANNOTATION_EXTENDED_RESOURCE_SPEC,
            "requested": [*protected_metadata.REQUESTS],
            "classes": [*protected_metadata.CLASSES],
            "marks": [*protected_metadata.MARKS],
            "marking": [*protected_metadata.MARKING_LABELS],
            "batch": [*names.BATCH_RESOURCES],
        },
        "reservations": {"guarded": [*protected_metadata.RESERVATIONS]},
        "standIns": {
            "label": names.LABEL_STAND_IN,
            "image": stand_in.IMAGE,
            "prefix": priorities.PREFIX,
        },
        "nodes": {
            "resources": [*projections.MANAGED],
            "annotations": [
                names.ANNOTATION_ORIGIN_ALLOCATABLE,
                names.ANNOTATION_CPU_NORMALIZATION,
                names.ANNOTATION_AMPLIFICATION,
                names.ANNOTATION_DEVICES_OFFERED,
            ],
            "labels": [*accelerators.LABELS],
        },
        "topologies": {"conditions": names.ANNOTATION_CONDITIONS},
        "deviceDaemon": {
            "labels": [*device_daemon_output.LABELS],
            "annotations": [*device_daemon_output.ANNOTATIONS],
        },
        "descheduler": {
            "podAnnotations": [names.ANNOTATION_SOFT_EVICTION, names.ANNOTATION_POD_DELETION_COST],
            "reservationLabels": [names.LABEL_RESERVATION_ORDER],
            "label": {
                "key": names.LABEL_CREATED_BY,
                "value": reservation_template.CREATED_BY,
            },
        },
        "webhooks": {
            "paths": {route.name: path for path, route in routes},
            "resources": {route.name: configurations.resources_of(route) for _, route in routes},
            "everywhere": [route.name for _, route in routes if route.everywhere],
        },
        "annotations": [names.ANNOTATION_ADMISSION, names.ANNOTATION_WITHDRAWN],
    }
    return "# Written by `make manifests` from the code's own lists.\n" + yaml.safe_dump(
        found, sort_keys=False
    )


def _split(text):
    """Sort documents, as text with their comments, by the process they belong to."""
    found = {}
    for document in re.split(r"^---$", text, flags=re.MULTILINE):
        lines = [line for line in document.splitlines() if not line.startswith("# Source:")]
        read = yaml.safe_load("\n".join(lines))
        if not read:
            continue
        component = read["metadata"].get("labels", {}).get("app.kubernetes.io/component", "")
        found.setdefault(PARTS.get(component, "shared"), []).append("\n".join(lines).strip("\n"))
    return {name: HEAD + "\n---\n".join(parts) + "\n" for name, parts in found.items()}


def write():
    """Write everything that is made; the chart's own files first, since the rest needs them."""
    WEBHOOKS.write_text(webhooks())
    POLICIES.write_text(policies())
    for path, text in files().items():
        target = MANIFESTS / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)


if __name__ == "__main__":
    if sys.argv[1:] != ["helm"]:
        write()
    elif binaries.can_build():
        print(program())
