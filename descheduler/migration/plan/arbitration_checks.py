"""What the arguments of MigrationController and the safeguards say about waiting jobs. Pure."""

from collections.abc import Collection
from typing import Final

from descheduler.configuration import by_profile, job_profiles
from descheduler.configuration.arguments import migration, parts
from descheduler.framework import protocols
from descheduler.framework.filtering import lasting_checks, limits, open_jobs, safeguards
from descheduler.model import picture, podinfo

Nodes = by_profile.ByProfile[parts.LabelSelector | None]
OTHER_NODE: Final = "its node is none of those of its profile (nodeSelector)"
_LASTING: Final = frozenset((safeguards.UNREADABLE, safeguards.EXEMPT, safeguards.PROTECTED))
"""Refusals of the safeguards that do not pass by themselves."""


class _Along:
    """Pods that move along with the one that is asked about; implements `protocols.Migrating`."""

    def __init__(self, migrating: protocols.Migrating) -> None:
        self.now = migrating

    def holds(self, pod: podinfo.Pod) -> bool:
        """Whether the pod itself is being moved."""
        return self.now.holds(pod)

    def count(self, but: podinfo.Pod) -> int:
        """Return how many jobs are open, without that of a pod."""
        return self.now.count(but)

    def count_on(self, node: str, but: podinfo.Pod) -> int:
        """Return how many pods of a node are being moved, without a pod."""
        return self.now.count_on(node, but)

    def count_in(self, namespace: str, but: podinfo.Pod) -> int:
        """Return how many jobs of a namespace are open, without that of a pod."""
        return self.now.count_in(namespace, but)

    def pods_of(self, controller: str, but: podinfo.Pod) -> Collection[podinfo.Pod]:
        """Return the pods of a controller, by its uid, that are being moved, without a pod."""
        return self.now.pods_of(controller, but)


class _OfProfile:
    """What the arguments of one profile say about the pods of a picture."""

    def __init__(self, arguments: migration.MigrationControllerArgs, seen: picture.Picture) -> None:
        self._arguments, self._seen = arguments, seen
        self.lasting = lasting_checks.LastingChecks(arguments, seen)
        self._migrating: protocols.Migrating | None = None
        self._limits: limits.MigratingLimits | None = None

    def limits_with(self, migrating: protocols.Migrating) -> limits.MigratingLimits:
        """Return its limits, in which the jobs of all profiles count."""
        if self._limits is None or self._migrating is not migrating:
            self._limits = limits.MigratingLimits(self._arguments, self._seen, migrating)
            self._migrating = migrating
        return self._limits


class ArbitrationChecks:
    """Judges the pods of one picture; implements `arbitrator.Checks`.

    That a pod is being moved already is not asked, nor who schedules it: its job is there.
    """

    def __init__(
        self, arguments: job_profiles.Arguments, nodes: Nodes, seen: picture.Picture
    ) -> None:
        """`nodes`: which ones the plug-ins of each profile are shown."""
        self._seen, self._nodes = seen, nodes
        self._of = arguments.mapped(lambda one: _OfProfile(one, seen))
        self._along = _Along(open_jobs.OpenJobs(seen, ()))
        self._safe = safeguards.Safeguards(seen, self._along)
        self._gangs = safeguards.Gangs(seen)

    def permanent_refusal(self, profile: str, pod: podinfo.Pod) -> str:
        """Return why a pod may not move at all, empty where it may."""
        found = self._of.of(profile).lasting.refusal(pod)
        if found:
            return found
        if not self._is_shown(profile, pod):
            return OTHER_NODE
        guarded = self._safe.refusal(pod)
        return guarded if guarded in _LASTING else ""

    def present_refusal(
        self,
        profile: str,
        pod: podinfo.Pod,
        migrating: protocols.Migrating,
        along: protocols.Migrating,
    ) -> str:
        """Return what does not let a pod move now; `along` has the pods of its group as well."""
        self._along.now = along
        return self._of.of(profile).limits_with(migrating).refusal(pod) or self._safe.refusal(pod)

    def _is_shown(self, profile: str, pod: podinfo.Pod) -> bool:
        """Whether the plug-ins of a profile see the node of a pod, or of a pod of its gang.

        People may name any profile on their jobs, and get no more by that than it may do itself. A
        round moves a gang as a whole, wherever its pods are.
        """
        selector, nodes = self._nodes.of(profile), self._seen.nodes
        if selector is None or pod.node not in nodes or selector.selects(nodes[pod.node].labels):
            return True
        there = {one.node for one in self._gangs.members(pod.gang)} & nodes.keys()
        return any(selector.selects(nodes[name].labels) for name in there)
