"""What labels and annotations of pods may ask a node for at most."""

from typing import Annotated, Final

from pydantic import Field

from api import names
from api.wire import base


class PodOverrideLimits(base.Model):
    """The most that labels and annotations of pods may ask for; a pod may always ask for less."""

    cpu_burst_percent: Annotated[base.Int64, Field(ge=1, le=10000)] | None = None
    """Highest cpuBurstPercent; 1000 when unset."""
    cfs_quota_burst_percent: Annotated[base.Int64, Field(ge=100)] | None = None
    """Highest cfsQuotaBurstPercent; 300 when unset."""
    cfs_quota_burst_period_seconds: Annotated[base.Int64, Field(ge=-1)] | None = None
    """Longest cfsQuotaBurstPeriodSeconds; -1 (default) is for ever."""
    min_limit_percent: base.Percent | None = None
    """Highest minLimitPercent of memoryQOS outside of best effort; 100 when unset."""
    low_limit_percent: base.Percent | None = None
    """Highest lowLimitPercent of memoryQOS outside of best effort; 100 when unset."""
    memory_priority: Annotated[base.Int64, Field(ge=0, le=12)] | None = None
    """Highest priority of memoryQOS; that of the class when unset."""
    wmark_min_adj: Annotated[base.Int64, Field(ge=-25, le=50)] | None = None
    """Lowest wmarkMinAdj of memoryQOS; that of the class when unset."""
    group_identity: Annotated[base.Int64, Field(ge=-1, le=2)] | None = None
    """Highest groupIdentity of cpuQOS; that of the class when unset."""
    oom_score_adj: Annotated[base.Int64, Field(ge=-997, le=1000)] | None = None
    """Lowest oom-score-adj; what the kubelet gives the container when unset."""
    cat_range_start_percent: base.Percent | None = None
    """Start of the cache range that a share of its own lies in; that of the class when unset."""
    cat_range_end_percent: base.Percent | None = None
    """End of that range; that of the class when unset."""
    mba_percent: base.Percent | None = None
    """Highest memory bandwidth of a pod with a share of its own; that of the class when unset."""
    refuse_eviction: base.Bool | None = None
    """Whether eviction-policy may keep best-effort pods from eviction; true when unset."""
    system_namespaces: tuple[base.Name, ...] | None = None
    """Namespaces whose pods may have the class SYSTEM; kube-system and the system's when unset."""


DEFAULT: Final = PodOverrideLimits(
    cpu_burst_percent=1000,
    cfs_quota_burst_percent=300,
    cfs_quota_burst_period_seconds=-1,
    min_limit_percent=100,
    low_limit_percent=100,
    refuse_eviction=True,
    system_namespaces=("kube-system", names.NAMESPACE),
)
"""What holds by default."""
