"""The chart as Helm renders it, with the values that are looked at."""

import base64
import functools

import pytest

from tests.e2e import binaries as builds
from tests.planes.install import chart, plain

IMAGE = "image.repository=registry.example.com/koord"
BUNDLE = base64.b64encode(b"-----BEGIN CERTIFICATE-----").decode()
FOREIGN = (
    "webhook.registration.by=chart",
    f"webhook.registration.caBundle={BUNDLE}",
    "webhook.registration.tlsSecret=my-pair",
)
COMBINATIONS = {
    "in-place": ("scheduler.mode=in-place", "namespace.create=true"),
    "no-scheduler": ("scheduler.mode=none",),
    "private": (
        f"image.digest=sha256:{'0' * 64}",
        "image.pullSecrets={one,two}",
        "image.pullPolicy=Always",
    ),
    "everything-else-is-somebody's": (
        "crds.install=false",
        "priorityClasses.create=false",
        "clusterSettings.create=false",
        "scheduler.config.create=false",
        "podDisruptionBudget.enabled=false",
        "networkPolicy.enabled=false",
        "uninstall.hook=false",
        "tests.enabled=false",
    ),
    "guarded": ("networkPolicy.apiServerBlocks={10.0.0.1/32,fd00::1/128}", "uninstall.purge=true"),
    "foreign-certificate": FOREIGN,
    "no-agent": ("agent.enabled=false",),
    "older-kubelets": ("agent.kubeletAccess=proxy", "agent.criticalPodsQuota=true"),
    "devices": (
        "agent.devices.enabled=true",
        "agent.podResources.enabled=true",
        "agent.configMap=koordlet-config",
        "deviceDaemon.enabled=true",
        "deviceDaemon.vendorTools=true",
        "deviceDaemon.labelsFolder=/etc/kubernetes/node-feature-discovery/features.d",
        "deviceDaemon.settings.sleepInterval=10m",
    ),
    "tuned": (
        "scheduler.percentageOfNodesToScore=100",
        "scheduler.extraArgs={--v=4}",
        "agent.profile=observe",
        "manager.settings.workers=4",
        "switches.extender=observe",
        "agent.maxUnavailable=1",
    ),
}
MONITORED = (
    "monitoring.serviceMonitor.enabled=true",
    "monitoring.prometheusRule.enabled=true",
    "monitoring.dashboards.enabled=true",
)
CERT_MANAGER = ("webhook.registration.by=chart", "webhook.registration.certManager=true")
# What does not contradict each other is looked at together.
TOGETHER = (
    ("private", "guarded", "tuned", "devices"),
    ("in-place", "foreign-certificate", "older-kubelets"),
    ("no-scheduler", "everything-else-is-somebody's", "no-agent"),
)
ALL = [
    (),
    *([value for name in some for value in COMBINATIONS[name]] for some in TOGETHER),
    (*MONITORED, *CERT_MANAGER),
]


@pytest.fixture(scope="module", autouse=True)
def helm(control_plane_binaries):
    if not builds.can_build():
        pytest.skip("needs Go to build Helm")


@functools.cache
def text_of(*assignments, **options):
    return chart.template(IMAGE, "crds.install=false", *assignments, **options)


def rendered(*assignments, **options):
    return chart.documents(text_of(*assignments, **options))


def of_kind(documents, *kinds):
    return plain.of_kind(documents, *kinds)
