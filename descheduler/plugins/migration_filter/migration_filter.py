"""Which pods a PodMigrationJob may move, and how many at the same time."""

from typing import Final

from api.koordinator import migration as jobs
from descheduler.configuration.arguments import migration
from descheduler.framework import protocols
from descheduler.framework.filtering import elsewhere, lasting_checks, limits
from descheduler.model import podinfo

NAME: Final = "MigrationController"
MOVING: Final = "it is being moved already"
SCHEDULER: Final = "its scheduler places no Reservations (schedulerNames)"


class MigrationFilter:
    """Refuses what the controller of the jobs would not carry out."""

    name = NAME

    def __init__(self, arguments: migration.MigrationControllerArgs) -> None:
        self._arguments = arguments

    def for_round(self, view: protocols.FilterView) -> protocols.Filtering:
        """Return what it says in one round."""
        return _Round(self._arguments, view)


class _Round:
    def __init__(
        self, arguments: migration.MigrationControllerArgs, view: protocols.FilterView
    ) -> None:
        self._migrating = view.migrating
        self._schedulers = _schedulers(arguments)
        self._lasting = lasting_checks.LastingChecks(arguments, view.picture)
        self._limits = limits.MigratingLimits(arguments, view.picture, view.migrating)
        looks = arguments.node_fit and not arguments.skips("NodeFit")
        selector = arguments.node_selector
        self._elsewhere = elsewhere.Elsewhere(view.picture, view.fit, selector) if looks else None

    def refusal(self, pod: podinfo.Pod) -> str:
        """Return why the pod must stay, empty where it may leave."""
        if self._migrating.holds(pod):
            return MOVING
        if self._schedulers is not None and pod.scheduler_name not in self._schedulers:
            return SCHEDULER
        return self._lasting.refusal(pod) or self._limits.refusal(pod)

    def varies(self, pod: podinfo.Pod) -> bool:
        """Return False: it goes by workload and template, and by what is being moved."""
        del pod
        return False

    def late_refusal(self, pod: podinfo.Pod) -> str:
        """Return why no other node takes it, where that is looked at."""
        return self._elsewhere.refusal(pod) if self._elsewhere is not None else ""


def _schedulers(arguments: migration.MigrationControllerArgs) -> frozenset[str] | None:
    """Return the schedulers whose pods may be moved; None: those of any may."""
    if arguments.default_job_mode != jobs.RESERVATION_FIRST:
        return None
    return frozenset(arguments.scheduler_names)
