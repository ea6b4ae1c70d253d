"""Settings of the extender."""

from pathlib import Path
from typing import Annotated, Literal, Self

import pydantic

from api import durations, names
from domain import load
from process import settings

Percent = Annotated[int, pydantic.Field(ge=0, le=100)]
Share = Annotated[int, pydantic.Field(ge=1, le=100)]
Kind = Literal["", "avg", "p50", "p90", "p95", "p99"]


def _seconds(value: object) -> object:
    return durations.seconds(value) if isinstance(value, str) else value


Duration = Annotated[float, pydantic.BeforeValidator(_seconds), pydantic.Field(ge=0)]
"""Seconds, or a text such as 5m."""


class AggregatedSettings(settings.Settings):
    """Measure load by a window instead of the latest usage."""

    usage_thresholds: dict[str, Percent] = pydantic.Field(default_factory=dict)
    """Percentages by resource for the windowed usage; replaces `usageThresholds` for other than
    prod pods once a type is given."""
    usage_aggregation_type: Kind = ""
    """Which aggregate the thresholds look at; empty switches windowed filtering off."""
    usage_aggregated_duration: Duration = 0.0
    """Exact window for filtering; 0 takes the longest that is reported."""
    score_aggregation_type: Kind = ""
    """Which aggregate the score looks at; empty scores by the latest usage."""
    score_aggregated_duration: Duration = 0.0
    """Exact window for scoring; 0 takes the longest that is reported."""


class LoadAwareSettings(settings.Settings):
    """Keep pods away from nodes that are busier than they look."""

    filter_expired_node_metrics: bool = True
    """Refuse nodes whose load report is too old; otherwise old reports are still compared."""
    node_metric_expiration_seconds: int = pydantic.Field(default=180, gt=0)
    """Age at which a load report is too old to filter or score by."""
    enable_schedule_when_node_metrics_expired: bool = False
    """Let pods onto nodes with an old report instead of refusing them."""
    resource_weights: dict[str, Share] = pydantic.Field(default_factory=dict)
    """How much each resource counts in the score; cpu and memory alike when empty."""
    dominant_resource_weight: Percent = 0
    """How much the scarcest resource counts in addition."""
    usage_thresholds: dict[str, Percent] = pydantic.Field(default_factory=dict)
    """Utilisation above which a node is refused; cpu 65 and memory 95 when empty, 0 is off."""
    prod_usage_thresholds: dict[str, int] = pydantic.Field(default_factory=dict)
    """The same for prod pods, compared with what prod pods use; off when empty."""
    prod_usage_include_sys: bool = False
    """Count what the system uses as prod usage."""
    score_according_prod_usage: bool = False
    """Score prod pods by what prod pods use."""
    estimator: str = ""
    """Name of the estimator; there is one, `defaultEstimator`."""
    estimated_scaling_factors: dict[str, Share] = pydantic.Field(default_factory=dict)
    """Share of a request that a pod is expected to use; cpu 85 and memory 70 where missing."""
    estimated_seconds_after_pod_scheduled: int | None = pydantic.Field(default=None, ge=0)
    """For how long after scheduling the estimate counts even if a measurement exists."""
    estimated_seconds_after_initialized: int | None = pydantic.Field(default=None, ge=0)
    """The same, counted from the moment the pod was initialised."""
    allow_customize_estimation: bool = False
    """Honour the annotations by which a pod changes its own estimate."""
    aggregated: AggregatedSettings | None = None
    """Measure load by a window; off when absent."""
    supported_resources: tuple[str, ...] = ()
    """Further resources that only nodes' own thresholds name."""

    @pydantic.model_validator(mode="after")
    def _weights_have_factors(self) -> Self:
        known = {names.CPU, names.MEMORY, *self.estimated_scaling_factors}
        for name in self.resource_weights:
            if name not in known:
                raise ValueError(
                    f"resourceWeights.{name}: add {name} to estimatedScalingFactors as well"
                )
        return self

    def arguments(self) -> load.Arguments:
        """Return the values with defaults filled in, as the arithmetic wants them."""
        windows = self.aggregated or AggregatedSettings()
        weights = self.resource_weights
        if not weights and not self.dominant_resource_weight:
            weights = {names.CPU: 1, names.MEMORY: 1}
        return load.Arguments(
            profile=load.Profile(
                usage=load.Thresholds(self.usage_thresholds or {names.CPU: 65, names.MEMORY: 95}),
                prod=load.Thresholds(self.prod_usage_thresholds),
                aggregated=load.Thresholds(
                    windows.usage_thresholds,
                    windows.usage_aggregation_type,
                    windows.usage_aggregated_duration,
                ),
            ),
            factors={names.CPU: 85, names.MEMORY: 70} | self.estimated_scaling_factors,
            weights=weights,
            dominant_weight=self.dominant_resource_weight,
            filter_expired=self.filter_expired_node_metrics,
            expiration_seconds=self.node_metric_expiration_seconds,
            schedule_when_expired=self.enable_schedule_when_node_metrics_expired,
            prod_includes_system=self.prod_usage_include_sys,
            score_prod_usage=self.score_according_prod_usage,
            score_kind=windows.score_aggregation_type,
            score_duration=windows.score_aggregated_duration,
            seconds_after_scheduled=self.estimated_seconds_after_pod_scheduled,
            seconds_after_initialized=self.estimated_seconds_after_initialized,
            customizable=self.allow_customize_estimation,
            extra_resources=self.supported_resources,
        )


class PluginSettings(settings.Settings):
    """Which plug-ins are asked and with which arguments."""

    enabled: tuple[str, ...] = ("BatchFit", "LoadAware")
    """Plug-ins in the order in which they filter."""
    weights: dict[str, int] = pydantic.Field(default_factory=lambda: {"LoadAware": 1})
    """How much each scorer counts; a scorer without a weight does not."""
    load_aware: LoadAwareSettings = LoadAwareSettings()
    """Arguments of LoadAware."""


class BindSettings(settings.Settings):
    """How a pod is bound."""

    deadline_seconds: float = pydantic.Field(default=25.0, gt=0)
    """Time for one bind call; keep it under the httpTimeout of the scheduler's bind entry."""
    start_seconds: float = pydantic.Field(default=5.0, gt=0)
    """Time from the check of a pod until its write must have left, else it is held back; keep it
    under the scheduler's lease, so that a process that stood still cannot bind after a takeover."""
    write_seconds: float = pydantic.Field(default=10.0, gt=0)
    """Time for one request to the API server before its outcome counts as unknown."""
    read_seconds: float = pydantic.Field(default=5.0, gt=0)
    """Time for asking the API server where a pod is; with the write it must fit the deadline."""
    promise_seconds: float = pydantic.Field(default=30.0, gt=0)
    """How long a placement counts that the watch has not confirmed; then the pod is read back."""


class FreshnessSettings(settings.Settings):
    """When the view of the cluster is trusted."""

    idle_seconds: float = pydantic.Field(default=10.0, gt=0)
    """After so long without a call the view is compared with the API server before answering."""
    proof_seconds: float = pydantic.Field(default=1.5, gt=0)
    """Time for that comparison; keep it under the httpTimeout of the scheduler's filter entry."""
    silence_seconds: float = pydantic.Field(default=65.0, gt=0)
    """A watch that tells nothing for longer is opened again; bookmarks come about every minute."""
    stale_seconds: float = pydantic.Field(default=60.0, gt=0)
    """After so long without a word while watches fail, nothing is answered but why not."""


class ExplanationSettings(settings.Settings):
    """ScheduleExplanations: why pods wait, written beside the calls."""

    write: bool = True
    """Answer ScheduleExplanations about pods that no node takes."""
    create: bool = True
    """Make one for such a pod where there is none; otherwise only what people ask is answered."""
    most: int = pydantic.Field(default=500, ge=0)
    """How many that were made here may exist; where few are left, namespaces share them evenly."""
    after_seconds: float = pydantic.Field(default=2.0, ge=0)
    """How long a pod has to wait before anything is written about it."""
    per_second: float = pydantic.Field(default=2.0, gt=0)
    """Answers written per second in the long run ..."""
    burst: int = pydantic.Field(default=20, ge=1)
    """... and at once."""
    refresh_seconds: float = pydantic.Field(default=60.0, gt=0)
    """After how long an answer that still holds is confirmed."""
    ttl_seconds: float = pydantic.Field(default=3600.0, ge=0)
    """Lifetime of what is made here after its last confirmation; 0 for ever."""


class NudgeSettings(settings.Settings):
    """Waking pods that a change of ours lets fit, since the scheduler does not see it."""

    enabled: bool = True
    """Wake them; otherwise they wait for an event of the scheduler's own, at most five minutes."""
    per_second: float = pydantic.Field(default=10.0, gt=0)
    """Pods woken per second in the long run ..."""
    burst: int = pydantic.Field(default=20, ge=1)
    """... and at once."""
    pause_seconds: float = pydantic.Field(default=2.0, ge=0)
    """How long after an attempt or a wake-up a pod is left alone; the scheduler's longest back-off
    (podMaxBackoffSeconds)."""
    most: int = pydantic.Field(default=5000, ge=0)
    """How many waiting pods are remembered, to be woken and explained; namespaces share them evenly
    where there are more."""


class VerbServer(settings.ServerSettings):
    """The listener for kube-scheduler, which runs beside us."""

    port: int = pydantic.Field(default=9211, ge=0, le=65535)
    """TCP port to listen on; 0 lets the system choose a free one."""


class HealthServer(settings.ServerSettings):
    """The listener for probes, scrapers and people."""

    port: int = pydantic.Field(default=9212, ge=0, le=65535)
    """TCP port to listen on; 0 lets the system choose a free one."""


class TokenSettings(settings.Settings):
    """How the extender renews the token that it shows to the API server."""

    file: Path | None = None
    """File with the token, which the kubeconfig names as `tokenFile`; its folder must be writable.
    Only a static pod needs this: in all other pods the kubelet renews the token."""
    account: str = "koord-extender"
    """ServiceAccount that the token stands for."""
    secret: str = "koord-extender-login"  # noqa: S105 - the name of an object
    """Secret that every token is bound to; deleting it revokes them all."""
    seconds: int = pydantic.Field(default=30 * 24 * 3600, ge=3600)
    """Life of a token. It is renewed after a third of it, so the extender may be down for the
    rest; the API server may grant less."""


class Settings(settings.Settings):
    """Everything the extender can be told."""

    server: VerbServer = VerbServer()
    """Where kube-scheduler calls filter, prioritize, preempt and bind."""
    health: HealthServer = HealthServer()
    """Where /healthz, /readyz, /metrics and the debug pages are served."""
    log: settings.LogSettings = settings.LogSettings()
    """What is logged."""
    plugins: PluginSettings = PluginSettings()
    """Plug-ins and their arguments."""
    bind: BindSettings = BindSettings()
    """Binding."""
    freshness: FreshnessSettings = FreshnessSettings()
    """Trust in the view."""
    explanations: ExplanationSettings = ExplanationSettings()
    """What is written about pods that wait."""
    nudges: NudgeSettings = NudgeSettings()
    """Waking pods that wait."""
    token: TokenSettings = TokenSettings()
    """Renewal of the token, for an extender in place."""
    namespace: str = names.NAMESPACE
    """Namespace of the configuration and of the switches."""
    instance: str = "koord-extender"
    """Name of this replica in the events it writes; usually the pod's name."""
    observe: bool = False
    """Only say what would be refused: everything passes and nothing is scored."""
