"""What a pod is expected to use, and from when on its node's report shows it."""

from api.koordinator.metadata.qos import Band
from domain.usage import load
from extender.framework import views
from extender.plugins.load_aware import thresholds

_REMEMBERED = 8192
"""Requirements whose estimate is kept."""


class Estimator:
    """Estimates pods by the arguments of the plug-in, or by their own where that is allowed."""

    def __init__(self, arguments: load.Arguments) -> None:
        self._arguments = arguments
        self._universe = arguments.universe()
        self._delays = bool(
            arguments.seconds_after_scheduled
            or arguments.seconds_after_initialized
            or arguments.customizable
        )
        self.estimate = views.PodRequirements.remembered(_REMEMBERED)(self._estimate)

    def _estimate(self, requirements: views.PodRequirements) -> load.Vector:
        factors = dict(self._arguments.factors)
        if self._arguments.customizable:
            factors |= thresholds.factors(requirements.scaling_factors)
        amounts = load.estimate(
            dict(requirements.requests), dict(requirements.limits), requirements.band, factors
        )
        return load.vector(amounts, self._universe)

    def resident(self, pod: views.PodRecord) -> load.Resident:
        """Return what matters of a pod on a node."""
        requirements = pod.requirements
        return load.Resident(
            pod.key,
            self.estimate(requirements),
            requirements.band is Band.PROD,
            pod.assigned_at,
            self._due(pod) if self._delays else None,
        )

    def _due(self, pod: views.PodRecord) -> float | None:
        requirements, arguments = pod.requirements, self._arguments
        scheduled, initialized = (
            arguments.seconds_after_scheduled,
            arguments.seconds_after_initialized,
        )
        if arguments.customizable:
            scheduled = thresholds.seconds(requirements.seconds_after_scheduled, scheduled)
            initialized = thresholds.seconds(requirements.seconds_after_initialized, initialized)
        return load.due_time(
            pod.assigned_at,
            pod.initialized_at if pod.initialized_at >= 0 else None,
            scheduled,
            initialized,
        )
