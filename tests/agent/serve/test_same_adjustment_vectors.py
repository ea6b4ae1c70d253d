"""The recorded values of hooks, as a runtime by NRI, a CRI proxy and reconciliation deliver them.

What is compared are the bytes that leave for a runtime or a proxy, and the edits of the loop.
"""

import functools

import msgspec
import pytest

from agent.hooks import batch_resources, resctrl
from agent.hooks.cpu import cpu_burst, group_identity
from agent.hooks.lifecycle import adjustment, reconciliation, stages
from agent.hooks.lifecycle import subject as subjects
from agent.model import edits, state
from agent.nri import messages
from agent.serve import container_events
from api import names
from api.kubernetes import core
from tests.agent.decide.strategies import test_cpu_burst_vectors as burst_vectors
from tests.agent.hooks import test_batch_resources_vectors as batch_vectors
from tests.agent.hooks import test_resctrl_vectors as resctrl_vectors
from tests.agent.hooks.cpu import test_group_identity_vectors as identity_vectors
from tests.agent.serve import test_same_adjustment as same
from tests.reference import cases, differences_agent

R = edits.Role
UID = "u"
RECONCILE = subjects.Stage.RECONCILE


def snapshot(bound, *pods, **more):
    """What answers, with one hook and the pods that the kubelet has named."""
    by_uid = {pod.pod.metadata.uid: pod for pod in pods}
    rules = stages.freeze([bound])
    return container_events.Snapshot(rules, by_uid, layout=same.LAYOUT, **more)


def running(raw):
    """A pod that runs, whatever is recorded of its phase."""
    return msgspec.structs.replace(raw, status=msgspec.structs.replace(raw.status, phase="Running"))


def placed(raw, kubernetes_qos, uid=UID):
    """A pod in the cgroup where runtimes say that it is."""
    meta = msgspec.structs.replace(raw.metadata, uid=uid)
    part = {"BestEffort": "/besteffort", "Burstable": "/burstable"}.get(kubernetes_qos, "")
    pod = msgspec.structs.replace(raw, metadata=meta)
    return state.PodState(pod, kubernetes_qos, group=f"kubepods{part}/pod{uid}")


def started(frozen, pod, name, *, has_cgroup):
    """The edits that are made before a container starts; behind a proxy it has no cgroup yet."""
    written = []
    answering = same.events(frozen, written)
    answering.has_cgroup = has_cgroup
    answering.state_changed(
        messages.Event.START_CONTAINER, same.described(pod), same.container(name)
    )
    return written


def reconciled(frozen, pod, container=None):
    """The edits of the loop for a pod or one of its containers."""
    level = subjects.Level.POD if container is None else subjects.Level.CONTAINER
    of = subjects.Subject(RECONCILE, level, pod, container)
    found, problems = adjustment.adjust(of, frozen.rules)
    assert all(one.unexpected is None for one in problems)
    return reconciliation.edits_of(of, found)


def in_group(found, group):
    return {one.role: one.value for one in found if one.group == group}


def batch_answer(ask, case):
    """The recorded values of batch pods, as the messages of NRI or of the hook API have them."""
    by, failed = batch_vectors.rule(case.given)
    raw = msgspec.convert(case.given["pod"], core.Pod)
    pod = placed(running(raw), "BestEffort")
    known = (pod,) if case.given["source"] == "reconciler" else ()
    frozen = snapshot(batch_resources.HOOK.bind(by), *known)
    each = {one.name: ask(frozen, pod, one.name) for one in raw.spec.containers}
    containers = {name: numbers(found) for name, found in each.items() if found}
    seen = pod if known else container_events.unknown_pod(same.described(pod), same.LAYOUT)
    of_pod = same.events(frozen, []).of_pod(seen, frozen, spec_known=bool(known))
    return numbers({one.role: one.value for one in of_pod}), containers, failed


def by_nri(frozen, pod, name):
    return same.by_nri(same.events(frozen, []), [], pod, name)[0]


def by_proxy(frozen, pod, name):
    return same.by_proxy(same.events(frozen, []), pod, name)


def numbers(values):
    return {batch_vectors.FIELDS[role]: int(value) for role, value in values.items()}


BY_MESSAGE = pytest.mark.parametrize("ask", [by_nri, by_proxy], ids=["nri", "proxy"])


@pytest.mark.vectors
@BY_MESSAGE
def test_the_values_of_batch_pods(ask):
    """By reconciliation they are those of `test_batch_resources_vectors`."""
    file = "batch_hook"
    found = functools.partial(batch_answer, ask)
    cases.check(file, found, batch_vectors.recorded, differences_agent.of(file))


def identity_of(way, frozen, pod):
    """The identity of a pod, which its container has too wherever it can be written."""
    if way == "loop":
        found = reconciled(frozen, pod)
        own = reconciled(frozen, pod, state.ContainerState("app", f"{pod.group}/app"))
    else:
        found = own = started(frozen, pod, "app", has_cgroup=way == "nri")
    of_pod = in_group(found, pod.group).get(R.CPU_IDENTITY, "error")
    of_container = in_group(own, f"{pod.group}/app").get(R.CPU_IDENTITY, "error")
    assert of_container == (of_pod if way != "proxy" else "error")
    return of_pod if of_pod == "error" else int(of_pod)


@pytest.mark.vectors
@pytest.mark.parametrize("way", ["nri", "proxy", "loop"])
def test_identities(way):
    """The hook API has no field: behind a proxy those of containers follow with the loop."""

    def answer(case):
        classes = identity_vectors.classes(case.given["resourceQOSStrategy"])
        by = group_identity.OnKernel(group_identity.rule(classes), native=True)
        pods = []
        for number, raw in enumerate(case.given["pods"]):
            meta = core.ObjectMeta(labels=raw["labels"], annotations=raw["annotations"])
            pods.append(placed(running(core.Pod(metadata=meta)), raw["kubeQOS"], f"u{number}"))
        frozen = snapshot(group_identity.HOOK.bind(by), *pods)
        return [identity_of(way, frozen, pod) for pod in pods]

    file = "group_identity"
    cases.check(
        *(file, answer, lambda case: identity_vectors.recorded(case)[3]), differences_agent.of(file)
    )


def burst_of(way, frozen, pod, container):
    if way == "loop":
        (found,) = reconciled(frozen, pod, container) or (None,)
        return found.value if found else None
    if way == "nri on cgroup v1":
        group = f"{pod.group}/{container.name}"
        return in_group(started(frozen, pod, container.name, has_cgroup=True), group).get(
            R.CPU_BURST
        )
    ask = by_nri if way == "nri" else by_proxy
    return ask(frozen, pod, container.name).get(R.CPU_BURST)


@pytest.mark.vectors
@pytest.mark.parametrize("way", ["nri", "nri on cgroup v1", "proxy", "loop"])
def test_bursts_of_containers(way):
    # A kernel with group identity takes a burst above the quota.
    kernel = state.Kernel(frozenset({R.CPU_IDENTITY}))
    roles = frozenset({"cpu-burst"})

    def answer(case):
        by = cpu_burst.Rule(burst_vectors.settings(case.given["cpuBurstStrategy"]), kernel)
        found = {}
        for raw in case.given["pods"]:
            told = differences_agent.pod_state(raw)
            pod = placed(told.pod, told.kubernetes_qos)
            version = 1 if "v1" in way else 2
            frozen = snapshot(cpu_burst.HOOK.bind(by), pod, roles=roles, cgroup_version=version)
            for one in burst_vectors.containers(case.given, raw):
                if (value := burst_of(way, frozen, pod, one)) is not None:
                    found[one.group] = int(value)
        return found

    def recorded(case):
        return {key: us for key, us in burst_vectors.recorded(case)[2].items() if "/" in key}

    cases.check("cpu_burst", answer, recorded, differences_agent.of("cpu_burst"))


def shares_of(way, case):
    """The lines of the group of a pod that asks for a part of the cache, and of the bandwidth."""
    given, found = case.given, {}
    machine = state.Caches(
        tuple(given["l3CacheIDs"]), int(given["cbmMaskHex"], 16), given["vendorID"]
    )
    wishes = {
        "l3": (R.RESCTRL_L3, "llc", "range", [given[f"catRange{e}Percent"] for e in ENDS]),
        "mb": (R.RESCTRL_MB, "mb", "percent", given.get("mbaPercent")),
    }
    for key, (role, part, field, asked) in wishes.items():
        wish = {part: {"schemata": {field: asked}}}
        annotations = {names.ANNOTATION_RESCTRL: msgspec.json.encode(wish).decode()}
        meta = core.ObjectMeta(annotations=annotations)
        pod = placed(running(core.Pod(metadata=meta)), "Burstable")
        frozen = snapshot(resctrl.HOOK.bind(resctrl.rule({}, machine)), pod)
        made = (
            reconciled(frozen, pod)
            if way == "loop"
            else started(frozen, pod, "app", has_cgroup=way == "nri")
        )
        text = in_group(made, f"{resctrl.POD_PREFIX}{UID}").get(role)
        if text is not None:
            found[key] = f"{text}\n"
    return found


ENDS = ("Start", "End")


@pytest.mark.vectors
@pytest.mark.parametrize("way", ["nri", "proxy", "loop"])
def test_shares_of_cache_and_bandwidth(way):
    def recorded(case):
        found = resctrl_vectors.recorded(case)
        # Of other processors the bandwidth of pods is left alone.
        known = case.given["vendorID"] in (resctrl.AMD, resctrl.INTEL)
        return {key: found[key] for key in ("l3", "mb") if key in found and (known or key == "l3")}

    def answer(case):
        return shares_of(way, case)

    cases.check("resctrl", answer, recorded, differences_agent.of("resctrl"))
