"""A runtime by NRI, a CRI proxy and reconciliation: the same pod gets the same values from each.

What is compared are the bytes that leave for a runtime or a proxy, and the edits of the strategies.
"""

import hypothesis
from hypothesis import strategies as st

from agent.decide import hook_rules
from agent.model import cgroup_layout, edits, state
from agent.nri import messages
from agent.serve import adjusted_messages, container_events, container_starts, hook_messages
from api.koordinator import runtime_hooks
from tests import draws
from tests.agent.hooks.lifecycle import test_equal_deliveries as equal
from tests.agent.nri import stand_in

R = edits.Role
wire = stand_in.wire
LAYOUT = cgroup_layout.Layout("/sys/fs/cgroup", 2, "cgroupfs")
IN_MESSAGES = {R.CPUSET, R.CPU_QUOTA, R.CPU_SHARES, R.MEMORY_LIMIT, R.PROCESS_OOM_SCORE}
"""What the hook API of CRI proxies has fields for, beside the CFS burst of cgroup v2."""


def events(snapshot, written):
    """What answers; everything that is left for a start is written at once."""
    made = container_events.Events(lambda: 0.0, wait_seconds=0.0)
    made.starts = container_starts.Starts(wait_seconds=0.0)

    def write(wanted, done):
        written.extend(wanted)
        done()

    made.starts.write = write
    made.snapshot = snapshot
    return made


def described(pod):
    """A pod as a runtime describes it: its metadata and where its cgroup is."""
    meta = pod.pod.metadata
    parent = {"BestEffort": "/kubepods/besteffort", "Burstable": "/kubepods/burstable"}
    said = stand_in.pod(meta.uid, dict(meta.labels), **meta.annotations)
    path = parent.get(pod.kubernetes_qos, "/kubepods").encode()
    return messages.read("PodSandbox", said + wire.field(8, wire.field(3, path)))


def container(name):
    path = wire.field(11, wire.field(5, f"/any/{name}".encode()))
    return messages.read("Container", stand_in.container(name, "u", name) + path)


def of_resources(found):
    """LinuxResources of NRI as values by role."""
    cpu, values = found.cpu, {}
    if cpu.cpus:
        values[R.CPUSET] = cpu.cpus
    for role, field in ((R.CPU_QUOTA, cpu.quota), (R.CPU_SHARES, cpu.shares)):
        if field.value:
            values[role] = str(field.value)
    if found.memory.limit.value:
        values[R.MEMORY_LIMIT] = str(found.memory.limit.value)
    for text in found.unified.values():
        values[R.CPU_BURST] = text
    if found.has_field("rdt_class"):
        values[R.PROCESS_RESCTRL] = found.rdt_class.value
    return values


def by_nri(answering, written, pod, name="app"):
    """What a container and its pod have when the first instruction runs, by NRI."""
    about, born = described(pod), container(name)
    adjusted = answering.create_container(about, born)
    # As bytes and back, as they travel.
    adjusted = messages.read("ContainerAdjustment", adjusted.to_bytes() if adjusted else b"")
    found = of_resources(adjusted.linux.resources)
    if adjusted.linux.has_field("oom_score_adj"):
        found[R.PROCESS_OOM_SCORE] = str(adjusted.linux.oom_score_adj.value)
    answering.state_changed(messages.Event.START_CONTAINER, about, born)
    group = f"{pod.group}/{name}"
    found |= {one.role: one.value for one in written if one.group == group}
    return found, {one.role: one.value for one in written if one.group == pod.group}


def by_proxy(answering, pod, name="app"):
    """What the hook API answers for a container that requests nothing."""
    meta = pod.pod.metadata
    asked = runtime_hooks.new(
        "ContainerResourceHookRequest",
        pod_meta={"name": meta.name, "namespace": meta.namespace, "uid": meta.uid},
        container_meta={"name": name},
        pod_labels=dict(meta.labels),
        pod_annotations=dict(meta.annotations),
    )
    born = hook_messages.container_of(asked, f"/any/{name}")
    made = hook_messages.adjusted(asked, answering.create_container(described(pod), born))
    limits = type(made).FromString(made.SerializeToString()).container_resources
    found = {
        R.CPUSET: limits.cpuset_cpus,
        R.CPU_QUOTA: limits.cpu_quota,
        R.CPU_SHARES: limits.cpu_shares,
        R.MEMORY_LIMIT: limits.memory_limit_in_bytes,
        R.CPU_BURST: limits.unified.get(adjusted_messages.BURST_FILE),
        R.PROCESS_OOM_SCORE: limits.oom_score_adj,
    }
    return {role: str(value) for role, value in found.items() if value}


@hypothesis.settings(max_examples=draws.at_least(40))
@hypothesis.given(
    st.lists(equal.PODS, min_size=1, max_size=4), equal.SETTINGS, st.booleans(), st.booleans()
)
def test_every_way_sets_the_same_values(pods, settings, native, has_groups):
    now = equal.look(pods, settings, native=native)
    later = equal.reconciled(now)
    made = {one.pod.metadata.uid: one for one in now.picture.pods}
    groups = {value for (role, _), value in later.items() if role is R.PROCESS_RESCTRL}
    snapshot = container_events.Snapshot(
        hook_rules.freeze(now, hook_rules.RULES),
        made,
        layout=LAYOUT,
        roles=frozenset({R.CPU_BURST}),
        resctrl_groups=frozenset(groups if has_groups else ()),
    )
    for pod in made.values():
        wanted = {role: value for (role, at), value in later.items() if at == f"{pod.group}/app"}
        if pod.kubernetes_qos == state.BEST_EFFORT:
            # They begin with those of the cgroup above.
            wanted.pop(R.CPUSET, None)
        if R.CPU_BURST in wanted and int(wanted.get(R.CPU_QUOTA, "-1")) > 0:
            # Reconciliation sees the quota that stands; the kernel refuses a burst above it.
            wanted[R.CPU_BURST] = str(min(int(wanted[R.CPU_BURST]), int(wanted[R.CPU_QUOTA])))
        of_pod = {role: value for (role, at), value in later.items() if at == pod.group}
        written = []
        assert by_nri(events(snapshot, written), written, pod) == (wanted, of_pod)
        sent = {
            role: value for role, value in wanted.items() if role in {*IN_MESSAGES, R.CPU_BURST}
        }
        # A score of 0 is what the message says without one.
        assert by_proxy(events(snapshot, []), pod) == {k: v for k, v in sent.items() if v != "0"}
