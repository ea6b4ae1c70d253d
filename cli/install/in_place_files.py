"""What a control-plane node needs to run the extender beside its kube-scheduler; pure."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from cli.install import commented_yaml

ACCOUNT = "koord-extender"
FOLDER = "/etc/kubernetes/koord"
"""Where the files are on the node."""
INSIDE = "/etc/koord"
"""Where the extender's own files are in its container."""
MANIFESTS = "/etc/kubernetes/manifests"
USER = 65532
"""Whom the extender runs as; its files must be readable by this user."""

LOGIN = f"{FOLDER}/login"
"""Where the token is on the node; the extender renews it there."""
LOGIN_INSIDE = "/etc/koord-login"
LOGIN_SECRET = f"{ACCOUNT}-login"
"""The Secret that every token is bound to."""
LOGIN_DURATION = "720h"
"""Life of a token; the extender renews it after a third."""
SCHEDULER_NAME = "kube-scheduler"
"""The name in the certificate that kube-scheduler shows."""

SCHEDULER_CONFIG = "scheduler.yaml"
CLIENT_CA, TOKEN, CLUSTER_CA = "client-ca.crt", "token", "cluster-ca.crt"
PATCH = "kube-scheduler+json.yaml"
"""kubeadm finds out from the name what a patch is for and of which kind it is."""


@dataclasses.dataclass(frozen=True, slots=True)
class Node:
    """What differs between clusters."""

    image: str
    server: str
    """The API server as the node reaches it."""
    namespace: str
    port: int = 9211
    health_port: int = 9212
    health_host: str = "127.0.0.1"
    scheduler_version: str = ""
    """Version of kube-scheduler; empty: filter leaves every choice to it."""


def settings(node: Node) -> str:
    """Return the settings of the extender."""
    document = {
        "namespace": node.namespace,
        "log": {"format": "json"},
        "server": {
            "host": "127.0.0.1",
            "port": node.port,
            "tls": {
                "certFile": f"{INSIDE}/tls.crt",
                "keyFile": f"{INSIDE}/tls.key",
                "clientCaFile": f"{INSIDE}/{CLIENT_CA}",
                "clientNames": [SCHEDULER_NAME],
            },
        },
        "token": {"file": f"{LOGIN_INSIDE}/{TOKEN}", "secret": LOGIN_SECRET},
        "scheduler": {
            "configFile": f"{INSIDE}/{SCHEDULER_CONFIG}",
            "version": node.scheduler_version,
        },
        "health": {"host": node.health_host, "port": node.health_port},
    }
    return commented_yaml.text(
        document,
        {
            (): "Settings of the extender; `koord extender --help` lists all of them.",
            ("server", "host"): "Only this node's kube-scheduler calls it.",
            ("server", "tls", "clientCaFile"): "Only clients with a certificate of this authority"
            " and one of the names below are let in. All three files are looked at every ten"
            " seconds.",
            ("token",): "The extender renews its token in this file after a third of its life.",
            (
                "scheduler",
            ): "A copy of kube-scheduler's configuration, and its version: by them filter"
            " chooses the node that it would choose. Without the version it never does. Feature"
            " gates on kube-scheduler's command line go into `arguments`.",
            ("health", "host"): "Probes and metrics, without authentication. An address of the"
            " node instead lets a collector read them, and everybody else on that network.",
        },
    )


def kubeconfig(node: Node) -> str:
    """Return the login of the extender; its token is a file of its own."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": "cluster",
                "cluster": {
                    "server": node.server,
                    "certificate-authority": f"{INSIDE}/{CLUSTER_CA}",
                },
            }
        ],
        "users": [{"name": ACCOUNT, "user": {"tokenFile": f"{LOGIN_INSIDE}/{TOKEN}"}}],
        "contexts": [{"name": "koord", "context": {"cluster": "cluster", "user": ACCOUNT}}],
        "current-context": "koord",
    }
    account = f"ServiceAccount {node.namespace}/{ACCOUNT}"
    return commented_yaml.text(
        document,
        {
            (): f"The login of the {account}. Static pods get no token of an account from"
            " Kubernetes, so the first one is put on the node and renewed there.",
            ("users",): "Read again whenever the API server refuses it.",
        },
    )


def login_secret(node: Node) -> str:
    """Return the Secret that every token of the extender is bound to."""
    document = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": LOGIN_SECRET, "namespace": node.namespace, "labels": labels()},
        "type": "Opaque",
    }
    return commented_yaml.text(
        document,
        {
            (): "It holds nothing. Tokens that are bound to it are valid as long as it exists, so"
            " that deleting it revokes the login of every extender in place at once."
        },
    )


def labels() -> dict[str, str]:
    """Return the labels by which our objects are found."""
    return {
        "app.kubernetes.io/name": "koord",
        "app.kubernetes.io/component": "scheduler",
        "app.kubernetes.io/part-of": "koord",
    }


def static_pod(node: Node) -> str:
    """Return the manifest that the kubelet of the node runs by itself."""
    document = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": ACCOUNT, "namespace": "kube-system", "labels": labels()},
        "spec": {
            "hostNetwork": True,
            "dnsPolicy": "Default",
            "priorityClassName": "system-node-critical",
            "terminationGracePeriodSeconds": 45,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": USER,
                "runAsGroup": USER,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [_container(node)],
            "volumes": [
                {
                    "name": "files",
                    "hostPath": {"path": f"{FOLDER}/extender", "type": "Directory"},
                },
                {"name": "login", "hostPath": {"path": LOGIN, "type": "Directory"}},
                {"name": "tmp", "emptyDir": {"medium": "Memory", "sizeLimit": "16Mi"}},
            ],
        },
    }
    return commented_yaml.text(
        document,
        {
            (): "The extender beside this node's kube-scheduler. The kubelet runs it without a"
            " scheduler, so it never depends on itself.",
            ("spec", "hostNetwork"): "kube-scheduler calls it on 127.0.0.1 of the node.",
            ("spec", "dnsPolicy"): "It must start before there is a DNS in the cluster.",
            ("spec", "terminationGracePeriodSeconds"): "A held bind ends before.",
            ("spec", "volumes", 0): "The folder and not its files, so that a renewed certificate"
            " is seen.",
            ("spec", "volumes", 1): "The one folder that it writes: its own token.",
        },
    )


def _container(node: Node) -> dict[str, Any]:
    everywhere = node.health_host in ("0.0.0.0", "::")  # noqa: S104 - compared, not bound

    def probe(path: str, **limits: int) -> dict[str, Any]:
        host = "127.0.0.1" if everywhere else node.health_host
        get = {"host": host, "path": path, "port": node.health_port}
        return {"httpGet": get, **limits}

    return {
        "name": "extender",
        "image": node.image,
        "args": [
            "extender",
            f"--config={INSIDE}/settings.yaml",
            f"--kubeconfig={INSIDE}/kubeconfig",
        ],
        "env": [
            {
                "name": "KOORD_EXTENDER_INSTANCE",
                "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}},
            }
        ],
        "ports": [{"name": "metrics", "containerPort": node.health_port}],
        "startupProbe": probe("/healthz", periodSeconds=2, failureThreshold=60),
        "livenessProbe": probe("/healthz", periodSeconds=10, timeoutSeconds=5, failureThreshold=6),
        "readinessProbe": probe("/readyz", periodSeconds=5, timeoutSeconds=3),
        "resources": {
            "requests": {"cpu": "200m", "memory": "256Mi"},
            "limits": {"memory": "2Gi"},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": "files", "mountPath": INSIDE, "readOnly": True},
            {"name": "login", "mountPath": LOGIN_INSIDE},
            {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108 - inside the container
        ],
    }


def scheduler_patch() -> str:
    """Return what changes in kubeadm's static pod of kube-scheduler, as a JSON patch."""
    folder = f"{FOLDER}/scheduler"
    operations: list[Mapping[str, Any]] = [
        {
            "op": "add",
            "path": "/spec/containers/0/command/-",
            "value": f"--config={folder}/config.yaml",
        },
        {
            "op": "add",
            "path": "/spec/containers/0/volumeMounts/-",
            "value": {"name": "koord", "mountPath": folder, "readOnly": True},
        },
        {
            "op": "add",
            "path": "/spec/volumes/-",
            "value": {"name": "koord", "hostPath": {"path": folder, "type": "Directory"}},
        },
    ]
    said = f"""What changes in the static pod of kube-scheduler: one flag and one folder. kubeadm
applies this file with `--patches`; pass it to every `kubeadm upgrade` as well, which writes
the manifest anew.

By hand, in {MANIFESTS}/kube-scheduler.yaml: append the flag to spec.containers[0].command,
the mount to spec.containers[0].volumeMounts and the volume to spec.volumes. Leave all other
flags: with --config, kube-scheduler still reads --authentication-kubeconfig,
--authorization-kubeconfig, --bind-address and --leader-elect, and ignores --kubeconfig, whose
file the configuration names."""
    head = "\n".join(" ".join(part.split()) for part in said.split("\n\n"))
    # The writer makes mappings; a patch is a list, so it is written below a key and moved up.
    lines = commented_yaml.text({"patch": operations}, {("patch",): head}).splitlines()
    lines.remove("patch:")
    return "\n".join(lines) + "\n"
