"""What an uninstallation would do: plans over inventories."""

import dataclasses

import pytest

from api import names, resources
from cli.install import process_pods, removal
from tests.planes.install import checkups

NOW = checkups.NOW
EMPTY = removal.Inventory(
    now=NOW,
    unmoved=0.0,
    workloads=(),
    running=(),
    leases=(),
    registrations=(),
    secrets=(),
    reports=(),
    nodes=(),
    pods=(),
)


def planned(options=removal.Options(), **there):  # noqa: B008 - a frozen value
    return removal.plan(dataclasses.replace(EMPTY, **there), options)


def sentences(steps):
    return [step.sentence() for step in steps]


def named(name, namespace="", **metadata):
    where = {"namespace": namespace} if namespace else {}
    return {"metadata": {"name": name, "uid": f"uid-{name}", **where, **metadata}}


def running(name, component, **metadata):
    labels = {**checkups.OURS, names.LABEL_COMPONENT: component}
    return named(name, names.NAMESPACE, labels=labels, **metadata)


def test_where_nothing_is_there_nothing_is_done():
    plan = planned()
    assert plan.steps == ()
    assert plan.busy == ()
    assert plan.refusal == ""


def test_processes_end_before_anything_is_cleaned():
    manager = checkups.deployment("manager")
    plan = planned(
        workloads=[(resources.DEPLOYMENTS, manager)],
        registrations=[(resources.MUTATING_WEBHOOKS, named("koord-webhook"))],
        secrets=[named("koord-webhook-certificates", names.NAMESPACE)],
    )
    assert sentences(plan.stop) == [
        "delete Deployment koordinator-system/koord-manager",
        "delete MutatingWebhookConfiguration koord-webhook",
    ]
    assert sentences(plan.clean) == ["delete Secret koordinator-system/koord-webhook-certificates"]
    assert plan.busy == ("Deployment koordinator-system/koord-manager",)


ENDING = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("pod", "busy", "unstopped"),
    [
        (running("m-0", "manager"), True, True),
        (running("m-0", "manager", **ENDING), True, False),
        (running("u-0", "uninstall"), False, False),
        ({**running("m-0", "manager"), "status": {"phase": "Failed"}}, False, False),
        (named("m-0", "elsewhere", labels=checkups.OURS), False, False),
    ],
    ids=["ours", "terminating", "this-one", "ended", "elsewhere"],
)
def test_pods_of_ours_are_waited_for(pod, busy, unstopped):
    plan = planned(running=[pod])
    assert (bool(plan.busy), bool(plan.unstopped)) == (busy, unstopped)


@pytest.mark.parametrize(("metadata", "unstopped"), [({}, True), (ENDING, False)])
def test_a_workload_that_was_not_deleted_is_not_stopped(metadata, unstopped):
    workload = {"kind": "DaemonSet", **named("koord-agent", names.NAMESPACE, **metadata)}
    plan = planned(workloads=[(resources.DAEMON_SETS, workload)])
    assert plan.busy == ("DaemonSet koordinator-system/koord-agent",)
    assert bool(plan.unstopped) is unstopped


@pytest.mark.parametrize(
    ("lease", "unmoved", "busy"),
    [
        (checkups.lease(age=2), 0.0, True),
        (checkups.lease(age=2), 16.0, False),
        (checkups.lease(age=100), 0.0, True),
        (checkups.lease(age=3600), 0.0, False),
        (checkups.lease(holder=""), 0.0, False),
        ({**checkups.lease(), "metadata": {"name": "koord-scheduler"}}, 0.0, False),
    ],
    ids=["held", "unmoved", "perhaps-wrong-clock", "long-dead", "free", "of-the-scheduler"],
)
def test_a_manager_that_may_live_is_waited_for(lease, unmoved, busy):
    plan = planned(leases=[lease], unmoved=unmoved)
    assert bool(plan.busy) is bool(plan.unstopped) is busy
    assert len(plan.clean) == 1


def test_a_static_pod_of_ours_has_to_go_first():
    mirror = running("koord-extender-cp", "scheduler", annotations={process_pods.MIRROR: "x"})
    plan = planned(running=[mirror])
    assert "koord-extender-cp" in plan.refusal
    assert "former configuration" in plan.refusal


def node(*entries, labels=None, annotations=None, **amounts):
    managed = []
    for manager, metadata, lent in entries:
        fields = {
            "f:metadata": {
                f"f:{part}": {f"f:{key}": {} for key in keys} for part, keys in metadata.items()
            }
        }
        status = {"f:capacity": {f"f:{key}": {} for key in lent}}
        managed.append({"manager": manager, "fieldsV1": {**fields, "f:status": status}})
    return {
        "metadata": {
            "name": "n",
            "labels": labels or {},
            "annotations": annotations or {},
            "managedFields": managed,
        },
        "status": {"capacity": amounts, "allocatable": amounts},
    }


LENT = {names.BATCH_CPU: "1k", names.BATCH_MEMORY: "1Gi"}
ORIGIN = names.ANNOTATION_ORIGIN_ALLOCATABLE


def test_what_we_lent_and_noted_is_taken_off_in_one_write():
    ours = ("koord-manager", {"annotations": [ORIGIN]}, LENT)
    theirs = ("kubectl", {"annotations": ["note"], "labels": ["koordinator.sh/by-hand"]}, ["cpu"])
    there = node(
        ours,
        theirs,
        annotations={ORIGIN: "x", "note": "y"},
        labels={"koordinator.sh/by-hand": "1"},
        cpu="4",
        **LENT,
    )
    (step,) = planned(nodes=[there]).clean
    nothing = {names.BATCH_CPU: None, names.BATCH_MEMORY: None}
    assert step.body == {
        "status": {"capacity": nothing, "allocatable": nothing},
        "metadata": {"annotations": {ORIGIN: None}},
    }
    assert step.sentence().startswith("take kubernetes.io/batch-cpu, kubernetes.io/batch-memory")


@pytest.mark.parametrize(
    ("entries", "taken"),
    [
        ([("koord-manager", {}, LENT), ("kubelet", {}, LENT)], True),
        ([("kubelet", {}, LENT)], True),
        ([("rival", {}, LENT)], False),
        ([("koord-manager", {}, LENT), ("rival", {}, LENT)], False),
        ([], False),
    ],
    ids=["shared-with-kubelet", "zeroed-by-kubelet", "rival", "shared-with-rival", "nobody"],
)
def test_what_somebody_else_claims_is_left(entries, taken):
    plan = planned(nodes=[node(*entries, **LENT)])
    assert bool(plan.clean) is taken
    rival = any("rival" in entry for entry in entries)
    assert any("rival writes them" in note for note in plan.notes) is rival


def test_what_is_gone_already_is_not_taken_off_again():
    assert planned(nodes=[node(("koord-manager", {"labels": ["koord.sh/x"]}, LENT))]).clean == ()


def test_reports_that_people_made_are_kept():
    ours = named("a", labels={names.LABEL_CREATED_BY: "koord-manager"})
    why = named("p", "shop", labels={names.LABEL_CREATED_BY: "koord-extender"})
    plan = planned(
        reports=[
            (resources.NODE_METRICS, ours),
            (resources.NODE_SLOS, named("by-hand")),
            (resources.SCHEDULE_EXPLANATIONS, why),
        ]
    )
    assert sentences(plan.clean) == ["delete NodeMetric a", "delete ScheduleExplanation shop/p"]
    assert any("1 object that people made is kept" in note for note in plan.notes)


ROLE = (resources.CLUSTER_ROLES, named("koord-manager"))
HELMS = (resources.SERVICES, named("s", annotations={removal.HELM: "koord"}))
KEPT = (resources.PRIORITY_CLASSES, named("koord-batch", annotations={removal.POLICY: "keep"}))
SETTING = (resources.CONFIG_MAPS, named(names.CONFIG_MAP_SWITCHES, names.NAMESPACE))


@pytest.mark.parametrize(
    ("options", "gone"),
    [
        (removal.Options(), ["ClusterRole koord-manager"]),
        (removal.Options(purge=True), ["ClusterRole koord-manager", "PriorityClass koord-batch"]),
        (removal.Options(keep_installation=True), []),
    ],
    ids=["plain", "purge", "hook"],
)
def test_what_an_installer_made(options, gone):
    plan = planned(options, installed=[ROLE, HELMS, KEPT, SETTING])
    assert sentences(plan.clean) == [f"delete {what}" for what in gone]
    told = any("helm uninstall koord" in note for note in plan.notes)
    assert told is not options.keep_installation


def test_only_our_definitions_are_ever_purged():
    ours = named("a.koordinator.sh", labels=dict(names.INSTALLED))
    theirs = named("b.koordinator.sh", labels={"app.kubernetes.io/part-of": "koordinator"})
    there = {"definitions": [ours, theirs], "settings": [named("slo-controller-config")]}
    assert planned(**there).clean == ()
    plan = planned(removal.Options(purge=True), **there)
    assert sentences(plan.clean) == [
        "delete ConfigMap slo-controller-config",
        "delete CustomResourceDefinition a.koordinator.sh",
    ]
    assert any("b.koordinator.sh" in note for note in plan.notes)


def test_people_are_told_what_becomes_of_pods():
    gates = [{"name": names.GATE_QUOTA}]
    pods = checkups.pods(
        checkups.pod("runs"),
        checkups.pod("waits", node=""),
        checkups.pod("ours", batch=False, node="", schedulerName=names.SCHEDULER),
        checkups.pod("gated", batch=False, node="", schedulingGates=gates),
        checkups.pod("web", batch=False),
    )
    told = "\n".join(planned(pods=pods).notes)
    assert "1 pod asks for batch or mid resources; it keeps running" in told
    assert "1 waiting pod asks for what no node lends: shop/waits" in told
    assert "1 waiting pod names the scheduler koord-scheduler, which ends: shop/ours" in told
    assert "shop/gated" not in told
    assert "shop/web" not in told


def test_what_becomes_of_several_pods():
    pods = checkups.pods(checkups.pod("a"), checkups.pod("b"))
    told = "\n".join(planned(pods=pods).notes)
    assert (
        "2 pods ask for batch or mid resources; they keep running, and once ended nothing like "
        "them can be placed: shop/a, shop/b"
    ) in told


def waiting(name, *, gates=(), condition="", node="", phase="Pending"):
    spec = {"schedulingGates": [{"name": gate} for gate in gates]}
    pod = checkups.pod(name, batch=False, node=node, **spec)
    told = [{"type": names.CONDITION_QUOTA, "status": condition}] if condition else []
    return {**pod, "status": {"phase": phase, "conditions": told}}


WAITING = {
    "gated": (
        waiting("p", gates=["a.io/b", names.GATE_QUOTA], condition="False"),
        ["open koord.sh/quota of Pod shop/p"],
        ["remove condition koord.sh/QuotaAvailable of Pod shop/p"],
    ),
    "behind two of ours": (
        waiting("p", gates=[names.GATE_QUOTA, names.GATE_GANG]),
        ["open koord.sh/quota, koord.sh/gang of Pod shop/p"],
        [],
    ),
    "behind gates of others": (waiting("p", gates=["a.io/b"]), [], []),
    "let in, without a node": (
        waiting("p", condition="True"),
        [],
        ["remove condition koord.sh/QuotaAvailable of Pod shop/p"],
    ),
    "let in, and runs": (waiting("p", condition="True", node="n", phase="Running"), [], []),
    "runs, though the condition says it waits": (
        waiting("p", condition="False", node="n", phase="Running"),
        [],
        ["remove condition koord.sh/QuotaAvailable of Pod shop/p"],
    ),
    "ended": (waiting("p", gates=[names.GATE_QUOTA], condition="False", phase="Failed"), [], []),
}


@pytest.mark.parametrize(
    ("pod", "gates", "clean"), [pytest.param(*case, id=name) for name, case in WAITING.items()]
)
def test_pods_that_wait_for_us_are_let_go(pod, gates, clean):
    plan = planned(pods=checkups.pods(pod))
    assert sentences(plan.gates) == gates
    assert sentences(plan.clean) == clean


def test_many_pods_are_told_of_in_one_sentence():
    pods = [waiting(f"p{number}", gates=[names.GATE_QUOTA]) for number in range(500)]
    told = list(planned(pods=checkups.pods(*pods)).sentences())
    assert len(told) == 1
    assert told[0].startswith("open our scheduling gates of 500 pods: shop/p0, ")
    assert len(told[0]) < 300


def test_stand_ins_are_deleted_and_other_pods_never():
    stand_in = checkups.pod("stand-in", batch=False)
    stand_in["metadata"]["labels"] = {names.LABEL_STAND_IN: "r"}
    plan = planned(pods=checkups.pods(stand_in, checkups.pod("runs")))
    assert plan.clean == (removal.Delete(resources.PODS, "stand-in", "shop", "uid-stand-in"),)


def test_classes_of_stand_ins_are_deleted_once():
    made = {**names.INSTALLED, names.LABEL_CREATED_BY: "koord-manager"}
    one, ours = named("koord-reservation-7", labels=made), named("koord-prod")
    kind = resources.PRIORITY_CLASSES
    for options in (removal.Options(), removal.Options(keep_installation=True)):
        installed = [] if options.keep_installation else [(kind, one)]
        plan = planned(options, classes=[one, ours], installed=installed)
        assert plan.clean == (
            removal.Delete(kind, "koord-reservation-7", uid=one["metadata"]["uid"]),
        )


def agent_pod(name, ready, phase="Running"):
    return {
        "metadata": {
            "name": f"koord-agent-{name}",
            "namespace": names.NAMESPACE,
            "labels": {names.LABEL_COMPONENT: "agent"},
        },
        "spec": {"nodeName": name},
        "status": {"phase": phase, "conditions": [{"type": "Ready", "status": ready}]},
    }


def test_nodes_whose_agent_is_not_ready_are_named():
    """It may be unable to put its node back as it ends."""
    running = (
        agent_pod("good", "True"), agent_pod("ended", "False", "Succeeded"),
        agent_pod("bad", "False"), agent_pod("gone", "Unknown"),
    )  # fmt: skip
    (told,) = process_pods.about(planned(running=running).at_risk)
    assert told.startswith("agents of 2 nodes are not ready")
    assert "bad, gone" in told
    assert "koord agent undo" in told
    assert not list(process_pods.about(planned(running=running[:2]).at_risk))
