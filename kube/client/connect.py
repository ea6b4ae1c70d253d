"""Finds the API server: the pod that a process runs in, a kubeconfig, or the user's settings."""

import importlib
import os
from pathlib import Path

from kube.client import access as accesses


async def connect(kubeconfig: Path | None = None, context: str | None = None) -> accesses.Access:
    """Return the access that a kubeconfig, the pod we run in, or the user's settings give."""
    if kubeconfig is None and context is None and "KUBERNETES_SERVICE_HOST" in os.environ:
        return accesses.in_cluster()
    # Loading the login library costs 20 MiB that a node agent, always in a pod, must not pay.
    login = importlib.import_module("kube.client.login")
    access: accesses.Access = await login.from_kubeconfig(kubeconfig, context)
    return access
