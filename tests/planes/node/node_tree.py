"""The groups of a node's pods as they stand: every file that an agent could write, to the byte."""

import contextlib

from agent.model import cgroup_properties

CONTROLLERS = ("cpu", "cpuset", "memory", "blkio")
FILES = sorted(
    {one.value[:2] for one in cgroup_properties.FILES.values() if one.value[0] in CONTROLLERS}
)
# The kubelet adds up what the running burstable pods request, the agent's own pod among them.
OF_THE_KUBELET = {("cpu", "kubepods/burstable", "cpu.shares")}


def snapshot(node):
    """Return the bytes of every such file by hierarchy, group and name."""
    found = {}
    for hierarchy, name in FILES:
        root = node.group(hierarchy)
        for group in sorted((root / "kubepods").glob("**/")):
            # A container that ends takes its group with it.
            with contextlib.suppress(OSError):
                where = hierarchy, str(group.relative_to(root)), name
                found[where] = (group / name).read_bytes()
    return found


def differences(before, after):
    """Return what differs between two snapshots, of the groups that are in both."""
    return {
        where: (text, after[where])
        for where, text in before.items()
        if where in after and after[where] != text and where not in OF_THE_KUBELET
    }
