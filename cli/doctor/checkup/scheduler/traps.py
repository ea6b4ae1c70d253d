"""What can be wrong with a KubeSchedulerConfiguration that calls the extender."""

from typing import Final

from api.kubernetes import scheduler_config
from cli.doctor.checkup.findings import Severity, Trap

RENDER: Final = "render it anew with `koord render scheduler-config` and restart kube-scheduler"

MISSING = Trap("scheduler.config", Severity.WARNING, "No scheduler configuration was found", RENDER)
UNREADABLE = Trap(
    "scheduler.unreadable", Severity.ERROR, "A scheduler configuration cannot be read", RENDER
)
OLD_API = Trap(
    "scheduler.api-version", Severity.ERROR, "The API version of the file is no longer served",
    f"set apiVersion: {scheduler_config.API_VERSION}",
)  # fmt: skip
NO_EXTENDER = Trap(
    "scheduler.no-extender", Severity.ERROR, "kube-scheduler calls no extender", RENDER
)
NO_BIND = Trap(
    "scheduler.no-bind", Severity.ERROR,
    "No entry has a bindVerb: pods are bound without our record of the placement", RENDER,
)  # fmt: skip
MANY_BINDS = Trap(
    "scheduler.many-binds", Severity.ERROR,
    "Several entries have a bindVerb: kube-scheduler refuses to start",
    "leave bindVerb in one entry",
)  # fmt: skip
IGNORABLE_BIND = Trap(
    "scheduler.ignorable-bind", Severity.ERROR,
    "The entry with bindVerb is ignorable: a failed bind falls through to the default binder, and "
    "the pod is bound without our record of the placement",
    "set ignorable: false in that entry",
)  # fmt: skip
IGNORABLE_FILTER = Trap(
    "scheduler.ignorable-filter", Severity.WARNING,
    "The entry with filterVerb is ignorable: while the extender is down, refusals are skipped "
    "silently",
    "set ignorable: false in that entry",
)  # fmt: skip
VERB = Trap(
    "scheduler.verb-missing", Severity.WARNING, "No entry has filterVerb, or prioritizeVerb, or "
    "preemptVerb", RENDER,
)  # fmt: skip
ONE_ENTRY = Trap(
    "scheduler.one-entry", Severity.WARNING,
    "One entry filters and binds: its httpTimeout is either too long for filtering or too short "
    "for a bind that waits",
    "use two entries, as `koord render scheduler-config` writes them",
)  # fmt: skip
FILTER_LONG = Trap(
    "scheduler.filter-timeout-long", Severity.WARNING,
    "httpTimeout of the filter entry exceeds 5 s: a silent extender stops the scheduling loop for "
    "as long, once per pod",
    "set httpTimeout: 2s in that entry",
)  # fmt: skip
FILTER_SHORT = Trap(
    "scheduler.filter-timeout-short", Severity.WARNING,
    "httpTimeout of the filter entry is not longer than the extender's freshness.proofSeconds",
    "set httpTimeout: 2s, or lower freshness.proofSeconds of the extender",
)  # fmt: skip
BIND_SHORT = Trap(
    "scheduler.bind-timeout", Severity.ERROR,
    "httpTimeout of the bind entry is not longer than the extender's bind.deadlineSeconds: "
    "kube-scheduler gives up on binds that still succeed",
    "set httpTimeout: 30s in that entry, or lower bind.deadlineSeconds of the extender",
)  # fmt: skip
NO_CA = Trap(
    "scheduler.tls-unverified", Severity.ERROR,
    "enableHTTPS without a CA, or insecure: kube-scheduler does not verify the extender",
    "name tlsConfig.caFile, and remove insecure",
)  # fmt: skip
NO_CLIENT_CERTIFICATE = Trap(
    "scheduler.tls-one-sided", Severity.WARNING,
    "HTTPS without a client certificate: the extender cannot tell who calls",
    "name tlsConfig.certFile and tlsConfig.keyFile",
)  # fmt: skip
NOT_LOCAL = Trap(
    "scheduler.not-loopback", Severity.ERROR,
    "The extender is called at another address than loopback: behind a Service any replica may be "
    "asked, and their views differ",
    "run the extender beside each kube-scheduler and call it at 127.0.0.1",
)  # fmt: skip
WEIGHT = Trap(
    "scheduler.extender-weight", Severity.WARNING,
    "The weight of the extender is not 1: its scores already reach 100",
    "set weight: 1 in that entry",
)  # fmt: skip
NO_WEIGHT = Trap(
    "scheduler.no-weight", Severity.ERROR,
    "An entry has prioritizeVerb and no positive weight: kube-scheduler refuses to start",
    "set weight: 1 in that entry",
)  # fmt: skip
UNSCALED = Trap(
    "scheduler.weights-unscaled", Severity.WARNING,
    "In-tree weights are not multiplied by 10: one point of an extender counts ten times, so ours "
    "outvotes them all",
    "set the score weights of the profile as `koord render scheduler-config` does",
)  # fmt: skip
CACHE = Trap(
    "scheduler.full-nodes", Severity.WARNING,
    "nodeCacheCapable is off: whole nodes are sent, and the extender answers from those instead of "
    "from its own state",
    "set nodeCacheCapable: true in that entry",
)  # fmt: skip
MANAGED_CORE = Trap(
    "scheduler.managed-core", Severity.ERROR,
    "managedResources names cpu, memory, something under kubernetes.io, or the same resource in "
    "two entries: kube-scheduler refuses to start",
    "name extended resources only, or leave managedResources out to be asked about every pod",
)  # fmt: skip
MANAGED = Trap(
    "scheduler.managed-resources", Severity.INFO,
    "managedResources is set: only pods that ask for one of those resources are placed by load",
    "leave managedResources out to be asked about every pod",
)  # fmt: skip
IGNORED = Trap(
    "scheduler.ignored-resource", Severity.WARNING,
    "A managed resource is ignoredByScheduler: kube-scheduler no longer counts it on any profile",
    "set ignoredByScheduler: false",
)  # fmt: skip
BACKOFF = Trap(
    "scheduler.max-backoff", Severity.WARNING,
    "podMaxBackoffSeconds is above 2: a pod that could run again waits up to that long",
    "set podMaxBackoffSeconds: 2",
)  # fmt: skip
SAMPLE = Trap(
    "scheduler.sampling", Severity.INFO,
    "percentageOfNodesToScore is not 100: the extender is shown a sample of the nodes",
    "set percentageOfNodesToScore: 100 where the best node matters more than throughput",
)  # fmt: skip
BATCHING = Trap(
    "scheduler.no-batching", Severity.INFO,
    "Any extender switches off the opportunistic batching of Kubernetes 1.35 and later, for every "
    "profile of that scheduler",
    "run our scheduler beside the cluster's own, so that other pods keep it",
)  # fmt: skip
LEASE_SHARED = Trap(
    "scheduler.lease-shared", Severity.ERROR,
    "Our scheduler competes for the Lease of the cluster's own kube-scheduler: one of the two "
    "stands still",
    "set leaderElection.resourceName: koord-scheduler and resourceNamespace to our namespace",
)  # fmt: skip
NO_ELECTION = Trap(
    "scheduler.no-election", Severity.ERROR,
    "Several replicas run without leader election: they place the same pods at once",
    "set leaderElection.leaderElect: true, or one replica",
)  # fmt: skip
NAME_TAKEN = Trap(
    "scheduler.name-taken", Severity.ERROR,
    "Our scheduler claims default-scheduler, which the cluster's own kube-scheduler serves as well",
    "name the profile koord-scheduler",
)  # fmt: skip
PROXY = Trap(
    "scheduler.proxy", Severity.WARNING,
    "kube-scheduler has a proxy in its environment and no NO_PROXY: calls to the API server go "
    "through it",
    "remove HTTPS_PROXY from the container, or add the API server to NO_PROXY",
)  # fmt: skip

ALL: Final = tuple(trap for trap in tuple(globals().values()) if isinstance(trap, Trap))
"""Every trap above, in its order."""
