"""What a scheduler configuration says about itself, above the lines that need a reason."""

import dataclasses
from collections.abc import Sequence

from cli.install import commented_yaml

BESIDE = "beside"
IN_PLACE = "in-place"


@dataclasses.dataclass(frozen=True, slots=True)
class Deadlines:
    """How long the extender works on a call, in seconds; the scheduler must wait longer."""

    proof: float
    """For the comparison of its view with the API server, before it answers a filter call."""
    bind: float
    """For one bind call, in which it may hold a gang until all members have arrived."""


_HEAD = {
    BESIDE: """Configuration of an unmodified kube-scheduler that runs beside the cluster's own
and serves only the pods that name it (spec.schedulerName).""",
    IN_PLACE: """Configuration of the cluster's own, unmodified kube-scheduler, with the
extender as a static pod on the same node.""",
}
_WRITTEN = """Written by `koord render scheduler-config --mode {}`, whose options change it.
Valid for Kubernetes 1.28 to 1.37."""
_LEADER = {
    BESIDE: """A lease of its own: with the lease of the cluster's scheduler, one of the two
would stand still. Whichever replica leads calls the extender in its own pod, so there is
always exactly one active pair.""",
    IN_PLACE: """The scheduler's ordinary lease. Whichever instance leads calls the extender on
its own node, so there is always exactly one active pair.""",
}
_KUBECONFIG = {
    BESIDE: "Empty: the ServiceAccount of the pod.",
    IN_PLACE: """With --config, kube-scheduler ignores its --kubeconfig flag: the file is named
here.""",
}


def comments(
    mode: str, deadlines: Deadlines, *, others: int = 0, notes: Sequence[str] | None = None
) -> commented_yaml.Comments:
    """Return the reasons, by the place in the document that they explain.

    `others` extenders come before ours; `notes` are there when the owner's file was merged.
    """
    head = [_HEAD[mode], _WRITTEN.format(mode)]
    if notes is not None:
        head += [_MERGED, *(f"Note: {note}." for note in notes)]
    deciding, binding = others, others + 1
    weights = ("profiles", 0, "plugins", "multiPoint", "enabled")
    said: dict[commented_yaml.Path, str] = {
        (): "\n\n".join(head),
        ("leaderElection",): _LEADER[mode],
        ("clientConnection", "kubeconfig"): _KUBECONFIG[mode],
        ("clientConnection", "qps"): _QPS,
        ("podMaxBackoffSeconds",): _BACKOFF,
        ("percentageOfNodesToScore",): _SAMPLE,
        ("profiles",): _PROFILES,
        weights: _WEIGHTS if notes is None else _SCALED,
        ("extenders",): _EXTENDERS,
        ("extenders", deciding): _DECIDING,
        ("extenders", deciding, "nodeCacheCapable"): _NAMES,
        ("extenders", deciding, "ignorable"): _NEVER_SKIPPED,
        ("extenders", deciding, "enableHTTPS"): _TLS,
        ("extenders", deciding, "weight"): _ONE,
        ("extenders", deciding, "httpTimeout"): _SHORT.format(deadlines.proof),
        ("extenders", binding): _BINDING,
        ("extenders", binding, "ignorable"): _NEVER_PAST,
        ("extenders", binding, "httpTimeout"): _LONG.format(deadlines.bind),
    }
    return {place: _flat(text) for place, text in said.items()}


_QPS = """The stock limits are 50 and 100. The extender writes the Bindings with a client of
its own; what is left here are conditions of pods that do not fit, evictions and events. API
priority and fairness protects the API server better than this number does."""
_BACKOFF = """The stock value is 10. A pod that is still in back-off when something becomes
free is not tried, however it was woken; two seconds bound that wait."""
_SAMPLE = """How many of the feasible nodes are looked for before the search stops."""
_PROFILES = """Extenders are asked for every profile of this scheduler. batch-cpu and batch-memory
are counted by NodeResourcesFit, and ignoredResources would not change that: it refuses what
does not fit without a call, its preemption finds victims among batch pods, and it wakes a pod
as soon as a node has room."""
_WEIGHTS = """Ten times the stock weights. kube-scheduler multiplies what an extender says by
ten without a limit; so 100 points of the extender weigh exactly as much as 100 points of a
plug-in with stock weight 1, and the plug-ins keep their proportions."""
_SCALED = """Ten times the weights that were in force before, the stock ones included.
kube-scheduler multiplies what an extender says by ten without a limit; so 100 points of the
extender weigh exactly as much as 100 points of a plug-in with weight 1, and the plug-ins keep
their proportions. The weights of other extenders have grown alike."""
_MERGED = """Made of a configuration that was there before: profiles, arguments, other extenders
and limits are as they were, its comments are not kept. Changed are the weights of everything
that scores, the longest back-off and the list of extenders. Keep the old file: it is the way
back, and the one to merge again."""
_EXTENDERS = """Two entries, because one httpTimeout serves all verbs of an entry.

managedResources is absent, so every pod of this scheduler is sent. It could not name what
matters: kube-scheduler refuses names under kubernetes.io there, and the same name in two
entries. Let pods that must not depend on the extender use another scheduler.

The address is local to the scheduler: each leader has its own extender, and no Service or
network is in between. A proxy in the scheduler's environment is not used for 127.0.0.1; its
NO_PROXY must name any other address.

Any extender switches off opportunistic batching (Kubernetes 1.35 and later) for all
profiles of this scheduler."""
_DECIDING = """Called inside the scheduling loop, so its time adds to every pod."""
_NAMES = """Only names of nodes are sent; the extender answers from what it watches itself."""
_NEVER_SKIPPED = """If the extender is away, pods wait. Skipped, they would be placed by
figures that do not count what others were promised."""
_NEVER_PAST = """Ignored, a failed bind would fall through to the default binder, and the pod
would run without what was allocated to it."""
_TLS = """Mutual TLS. Without caFile, kube-scheduler would silently not verify whom it talks
to."""
_ONE = """With weight 1 the extender's scores of 0 to 100 span 0 to 1000 points; see the
plug-ins' weights."""
_SHORT = """After a silence the extender compares its view with the API server before it
answers, for at most {:g} s (freshness.proofSeconds); this must be longer."""
_BINDING = """Called in a goroutine per pod, outside the loop: the extender may hold a bind
open until all members of a gang have arrived, while other pods are scheduled."""
_LONG = """A bind ends after at most {:g} s (bind.deadlineSeconds); this must be longer, else a
pod is bound whose bind the scheduler believes to have failed."""


def _flat(text: str) -> str:
    """Undo the line breaks of the source; an empty line ends a paragraph."""
    return "\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))
