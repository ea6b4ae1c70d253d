"""Teams that declare gangs in every form and change their minds, and nodes that come and go."""

import json

from hypothesis import stateful
from hypothesis import strategies as st

from api import names
from tests.extender.clusters import slots
from tests.extender.gangs.stage import gang_life, gang_server

GANGS = ("a", "b", "c")
FORMS = ("annotations", "labels", "pod group", "native")
POLICIES = ("only-waiting", "waiting-and-running", "once-satisfied")
NODES = ("n0", "n1", "n2")
WANTED = {
    "form": st.sampled_from(FORMS),
    "least": st.integers(1, 4),
    "cpu": st.integers(1, 4),
    "policy": st.sampled_from(POLICIES),
    "strict": st.booleans() | st.just(True),
    "priority": st.sampled_from((0, 0, 5)),
    "wait": st.sampled_from((3, 600)),
    "grouped": st.booleans(),
    "slotted": st.booleans(),
}
"""What a team may ask for."""
SMALL = st.fixed_dictionaries(
    WANTED
    | {
        "form": st.sampled_from(FORMS[:2]),
        "least": st.integers(2, 4),
        "cpu": st.integers(1, 2),
        "grouped": st.just(False),
    }
)
"""What small gangs ask for that need no gate where kube-scheduler is behind."""


class Teams(stateful.RuleBasedStateMachine):
    """What happens to the objects of a cluster, whatever becomes of them."""

    def __init__(self):
        super().__init__()
        self.server = gang_server.Server()
        self.declared = {}
        self.excused = set()
        """Gangs that lost a member, or were declared anew, when some of them were bound."""
        self.serial = 0
        self.gates = gang_life.gate()
        """What admission puts on new members, but for those of native groups."""
        for name, cpu in (("n0", 6), ("n1", 4)):
            self.add_node(name, cpu)

    # -- teams -------------------------------------------------------------------------------

    def add_node(self, name, cpu):
        raw = {
            "metadata": {"name": name, "uid": self.server.uid(name)},
            "spec": {},
            "status": {"allocatable": {"cpu": str(cpu), "pods": "110", slots.RESOURCE: "2"}},
        }
        self.server.put_other("nodes", name, raw)

    @stateful.rule(name=st.sampled_from(GANGS), members=st.integers(0, 5), **WANTED)
    def declare(self, name, members, **wanted):
        """A team declares a gang, and creates some members of it."""
        if self.members(name) or f"team/{name}" in self.server.pod_groups:
            return
        if wanted["form"] == "native" or name == "c":
            wanted["grouped"] = False
        if wanted["grouped"]:
            wanted |= {"cpu": 2, "slotted": False}
        self.declared[name] = wanted
        self.excused.discard(name)
        self.create_pod_group(name)
        self.arrive(name, members)

    @stateful.rule(name=st.sampled_from(GANGS))
    def create_pod_group(self, name):
        wanted, key = self.declared.get(name), f"team/{name}"
        if not wanted or wanted["form"] not in FORMS[2:] or key in self.server.pod_groups:
            return
        least = wanted["least"]
        policy = {"schedulingPolicy": {"gang": {"minCount": least}}}
        self.server.put_other(
            "pod_groups",
            key,
            {
                "kind": wanted["form"],
                "metadata": {
                    "name": name,
                    "namespace": "team",
                    "uid": self.server.uid(f"group-{name}"),
                    "annotations": self.notes(wanted),
                },
                "spec": policy if wanted["form"] == "native" else {"minMember": least},
            },
        )

    @stateful.rule(name=st.sampled_from(GANGS))
    def delete_pod_group(self, name):
        if f"team/{name}" in self.server.pod_groups:
            self.server.delete_other("pod_groups", f"team/{name}")
            self.disturbed(name)

    @stateful.rule(name=st.sampled_from(GANGS), least=st.integers(1, 5))
    def change_minimum(self, name, least):
        raw = self.server.pod_groups.get(f"team/{name}")
        if raw is None:
            return
        self.declared[name] = self.declared[name] | {"least": least}
        self.server.delete_other("pod_groups", f"team/{name}")
        self.create_pod_group(name)
        self.disturbed(name)

    @staticmethod
    def notes(wanted):
        found = {
            names.ANNOTATION_GANG_MATCH_POLICY: wanted["policy"],
            names.ANNOTATION_GANG_MODE: "Strict" if wanted["strict"] else "NonStrict",
            names.ANNOTATION_GANG_WAITING_TIME: f"{wanted['wait']}s",
        }
        if wanted["grouped"]:
            found[names.ANNOTATION_GANG_GROUPS] = json.dumps(["team/a", "team/b"])
        return found

    @stateful.rule(gated=st.booleans())
    def let_in(self, gated):
        """Admission lets members wait behind gates from now on, or does not."""
        self.gates = gang_life.gate() if gated else []

    @stateful.rule(name=st.sampled_from(GANGS), count=st.integers(1, 3))
    def arrive(self, name, count):
        for _ in range(count if name in self.declared else 0):
            if len(self.members(name)) < 6:
                self.serial += 1
                self.create(name, f"{name}-{self.serial}")

    def create(self, gang, name):
        wanted = self.declared[gang]
        requests = {"cpu": str(wanted["cpu"])} | (
            {slots.RESOURCE: "1"} if wanted["slotted"] else {}
        )
        labels, notes, spec = {}, {}, {"schedulingGates": self.gates}
        match wanted["form"]:
            case "annotations":
                notes = self.notes(wanted) | {names.ANNOTATION_GANG_NAME: gang}
                notes[names.ANNOTATION_GANG_MIN_AVAILABLE] = str(wanted["least"])
            case "labels":
                notes, labels = self.notes(wanted), {names.LABEL_POD_GROUP_OLD: gang}
                labels[names.LABEL_POD_GROUP_MIN_AVAILABLE] = str(wanted["least"])
            case "pod group":
                labels = {names.LABEL_POD_GROUP: gang}
            case _:
                spec = {"schedulingGroup": {"podGroupName": gang}}
        self.server.put(
            f"team/{name}",
            {
                "metadata": {
                    "name": name,
                    "namespace": "team",
                    "uid": self.server.uid(name),
                    "labels": labels,
                    "annotations": notes,
                    "creationTimestamp": "2026-07-01T12:00:00Z",
                },
                "spec": spec
                | {
                    "nodeName": "",
                    "priority": wanted["priority"],
                    "containers": [{"name": "c", "resources": {"requests": requests}}],
                },
                "status": {"phase": "Pending"},
            },
        )

    @stateful.rule(which=st.integers(0, 20))
    def delete(self, which):
        if self.server.pods:
            key = sorted(self.server.pods)[which % len(self.server.pods)]
            self.lose(key)

    def lose(self, key):
        pod = self.server.pods[key]
        if not gang_server.leaving(pod):
            self.disturbed(self.gang(pod))
        self.server.delete(key)

    @stateful.rule(name=st.sampled_from(GANGS))
    def start_anew(self, name):
        """All pods of a gang that runs are evicted, and replaced while they terminate."""
        is_grouped = self.declared.get(name, {}).get("grouped", False)
        both = [one for one in GANGS[:2] if self.declared.get(one, {}).get("grouped")]
        found = [pod for one in (both if is_grouped else [name]) for pod in self.members(one)]
        if not all(pod["spec"]["nodeName"] for pod in found) or self.server.late:
            return
        for pod in found:
            meta = pod["metadata"] | {"deletionTimestamp": "2026-07-01T12:00:00Z"}
            self.server.put(f"team/{meta['name']}", pod | {"metadata": meta})
        for gang in map(self.gang, found):
            self.excused.discard(gang)
            self.serial += 1
            self.create(gang, f"{gang}-{self.serial}")

    @stateful.rule()
    def end_terminating(self):
        """The kubelet ends what is terminating."""
        for key, pod in list(self.server.pods.items()):
            if gang_server.leaving(pod):
                self.server.delete(key)

    def disturbed(self, gang):
        """What is left of a gang that runs, or is about to, is the business of its quorum guard.

        An extender that has not heard of the change yet binds by what it knows.
        """
        members = self.members(gang)
        if any(pod["spec"]["nodeName"] or not gang_server.gated(pod) for pod in members):
            self.excused.add(gang)

    # -- nodes -------------------------------------------------------------------------------

    @stateful.rule(name=st.sampled_from(NODES), cpu=st.integers(2, 9))
    def come(self, name, cpu):
        if name not in self.server.nodes:
            self.add_node(name, cpu)

    @stateful.rule(name=st.sampled_from(NODES))
    def go(self, name):
        if name in self.server.nodes:
            self.server.delete_other("nodes", name)

    def collect(self):
        """Delete pods of nodes that are gone, as Kubernetes does."""
        for key, pod in list(self.server.pods.items()):
            if pod["spec"]["nodeName"] and pod["spec"]["nodeName"] not in self.server.nodes:
                self.lose(key)

    @stateful.rule(name=st.sampled_from(NODES))
    def cordon(self, name):
        if name in self.server.nodes:
            self.take_pods(name, bool(self.server.nodes[name]["spec"]))

    def take_pods(self, name, takes):
        """Let a node take further pods, or not."""
        raw = json.loads(json.dumps(self.server.nodes[name]))
        raw["spec"] = {} if takes else {"unschedulable": True}
        self.server.put_other("nodes", name, raw)

    # -- what there is -------------------------------------------------------------------------

    def members(self, gang):
        pods = self.server.pods.values()
        return [pod for pod in pods if self.gang(pod) == gang and not gang_server.leaving(pod)]

    @staticmethod
    def gang(pod):
        return pod["metadata"]["name"].partition("-")[0]
