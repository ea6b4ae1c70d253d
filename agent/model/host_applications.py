"""Processes outside of Kubernetes that a NodeSLO names: where they run and how they count. Pure."""

from agent.model import cgroup_layout, state
from api.koordinator.settings import strategies

_LATENCY_SENSITIVE = frozenset({"LSE", "LSR", "LS"})
_BEST_EFFORT_BASE = "KubepodsBesteffort"


def group(arranged: cgroup_layout.Layout, application: strategies.HostApplication) -> str:
    """Return the control group of an application; raises LayoutError where it can be none."""
    path = application.cgroup_path
    if path is not None:
        return arranged.host_group(path.base or "", path.parent_dir, path.relative_path)
    if application.qos in _LATENCY_SENSITIVE:
        parent = "host-latency-sensitive"
    else:
        parent = "host-best-effort" if application.qos == "BE" else ""
    return arranged.host_group("", parent, application.name)


def seen(
    application: strategies.HostApplication, usage: state.Usage, group: str = ""
) -> state.HostApplication:
    """Return what decisions and reports look at."""
    path = application.cgroup_path
    return state.HostApplication(
        name=application.name,
        best_effort=application.qos == "BE" and path is not None and path.base == _BEST_EFFORT_BASE,
        cpu=usage.cpu,
        memory=usage.memory,
        priority=application.priority,
        qos=application.qos,
        group=group,
    )
