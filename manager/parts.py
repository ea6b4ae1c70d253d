"""What each capability of the manager is to do, as the settings say."""

from typing import Final

from domain.quota.waiting import line
from manager import term
from manager.devices import status_controller as device_status
from manager.devices import term as device_term
from manager.gangs import controller as pod_groups
from manager.gangs import restarts as gang_restarts
from manager.gangs import status_writes as pod_group_status
from manager.gangs import term as ganging
from manager.profiles import controller as colocation_profile
from manager.profiles import status_controller as profile_status
from manager.profiles import term as profiling
from manager.quota import enforcement
from manager.quota import term as quota_term
from manager.quota.overuse import reclaim as quota_reclaim
from manager.quota.status import defaults, status_controller
from manager.quota.waiting import gates as quota_gates
from manager.quota.waiting import gates_conditions
from manager.recommendation import plan as recommendation
from manager.reservations import controller as reservation
from manager.reservations import placement_plan
from manager.reservations import term as reserving
from manager.settings import BY_NODE, RecommendationSettings, Settings
from process.configuration import features, switches

_SETTLE_SECONDS: Final = 1.0


def nodes(settings: Settings, *, slices: bool) -> term.Duties:
    """Return which controllers work on nodes."""
    return term.Duties(
        settings.config_namespace,
        settings.config_name,
        tuple(name for name in BY_NODE if settings.is_on(name)),
        settings.workers,
        slices=slices,
    )


def quotas(settings: Settings) -> quota_term.Duties:
    """Return what is done about elastic quota."""
    chosen = settings.quota
    return quota_term.Duties(
        keeps_profiles=settings.is_on("quotaprofile"),
        writes_status=settings.is_on(status_controller.NAME),
        keeps_defaults=settings.is_on(defaults.NAME),
        namespace=settings.config_namespace,
        pace=status_controller.Pace(chosen.status_per_second, chosen.status_burst),
        enforces=_enforcing(settings),
    )


def devices(settings: Settings) -> device_term.Duties:
    """Return what is done about Devices."""
    chosen = settings.devices
    return device_term.Duties(
        settings.is_on(device_status.NAME),
        device_status.Pace(chosen.status_per_second, chosen.status_burst),
    )


def reservations(settings: Settings) -> reserving.Duties:
    """Return how Reservations are placed."""
    chosen = settings.reservations
    return reserving.Duties(
        placement_plan.Rules(chosen.schedulers, settings.config_namespace, chosen.tries),
        reservation.Pace(
            chosen.stand_ins_per_second,
            chosen.stand_ins_burst,
            chosen.status_per_second,
            chosen.status_burst,
            chosen.uses_per_second,
        ),
        settings.workers,
    )


def gangs(settings: Settings) -> ganging.Duties:
    """Return what is done about gangs."""
    chosen = settings.gangs
    pace = pod_groups.Pace(
        pod_group_status.Pace(chosen.status_per_second, chosen.status_burst),
        gang_restarts.Pace(chosen.evictions_per_second, chosen.evictions_burst),
    )
    mode = switches.Mode(chosen.repair)
    return ganging.Duties(settings.config_namespace, mode, pace, settings.workers)


def _enforcing(settings: Settings) -> enforcement.Duties:
    opens, reclaims = settings.quota.gates, settings.quota.reclaim
    # Of two leaders the second sees what the first wrote last before it decides.
    settle = _SETTLE_SECONDS if settings.leader_election.enabled else 0.0
    rules = line.LineRules(
        overtakes=opens.overtakes if opens.overtakes >= 0 else None,
        retry_seconds=opens.retry_seconds,
    )
    pace = gates_conditions.Pace(opens.conditions_per_second)
    namespace = settings.config_namespace
    return enforcement.Duties(
        namespace,
        opens=quota_gates.Pace(
            rules, opens.per_second, opens.burst, opens.in_flight, pace, settle, namespace
        ),
        opens_mode=switches.Mode(opens.mode),
        reclaims=quota_reclaim.Pace(
            reclaims.per_second,
            reclaims.burst,
            settle_seconds=settle,
            own_namespace=namespace,
        ),
        reclaims_mode=switches.Mode(reclaims.mode),
    )


def profiles(settings: Settings, gates: features.Gates) -> profiling.Duties:
    """Return what is done about ClusterColocationProfiles."""
    return profiling.Duties(settings.is_on(profile_status.NAME), _waiting_pods(settings, gates))


def _waiting_pods(settings: Settings, gates: features.Gates) -> colocation_profile.Pace | None:
    """Return how waiting pods are changed; None leaves them alone."""
    if not (settings.is_on("colocationprofile") and gates.enabled(profiling.GATE.name)):
        return None
    chosen = settings.colocation_profile
    return colocation_profile.Pace(
        by_default=chosen.by_default,
        interval_seconds=chosen.interval_seconds,
        again_seconds=chosen.again_seconds,
        per_second=chosen.per_second,
        burst=chosen.burst,
    )


def recommendations(chosen: RecommendationSettings) -> recommendation.Rules:
    """Return what is recommended to workloads."""
    return recommendation.Rules(
        cpu_percentile=chosen.cpu_percentile / 100,
        memory_percentile=chosen.memory_percentile / 100,
        target_margin=chosen.margin_percent / 100,
        least_cpu_milli=chosen.least_cpu_milli,
        least_memory=chosen.least_memory_bytes,
        period_seconds=chosen.period_seconds,
    )
