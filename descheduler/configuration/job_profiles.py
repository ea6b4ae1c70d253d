"""The arguments of MigrationController for the jobs of each profile, and what they share. Pure.

One controller carries out the jobs of all profiles. What is about that controller, or about all
jobs of the cluster, holds for all profiles alike.
"""

import dataclasses
from collections.abc import Callable, Collection, Sequence
from typing import Any, Final

from descheduler.configuration import by_profile, profile
from descheduler.configuration.arguments import migration, models
from domain.scheduler_settings.notes import Notes

_SHARED: Final[Sequence[tuple[str, str, Callable[[Collection[Any]], Any]]]] = (
    ("max_migrating_globally", "maxMigratingGlobally", min),
    ("evict_qps", "evictQPS", min),
    ("evict_burst", "evictBurst", min),
    ("max_concurrent_reconciles", "maxConcurrentReconciles", max),
)
"""Fields, their names in the file, and which of several values holds for all profiles."""

Arguments = by_profile.ByProfile[migration.MigrationControllerArgs]


def arguments(profiles: Sequence[profile.Profile]) -> Arguments:
    """Return the arguments by profile; where a job names none, those of the first hold.

    Without a profile that has any, the defaults hold, and none is named.
    """
    named = _of_jobs(profiles)
    first = next(iter(named.values()), None)
    return by_profile.ByProfile(first or migration.MigrationControllerArgs().complete(), named)


def agreed(
    profiles: Sequence[profile.Profile], path: str, notes: Notes
) -> tuple[profile.Profile, ...]:
    """Return profiles of which none contradicts another in what they share; warn where one did."""
    named = _of_jobs(profiles)
    if len(named) < 2:
        return tuple(profiles)
    given = tuple(named.values())
    shared: dict[str, Any] = {}
    for field, written, chosen in _SHARED:
        values = {getattr(one, field) for one in given if _counts(field, one)}
        if values:
            shared[field] = _one(values, chosen, f"{path}: {written}", notes)
    intervals = {one.arbitration_args.interval for one in given}
    interval = _one(intervals, min, f"{path}: arbitrationArgs.interval", notes)
    after = {
        name: one.but(**shared, arbitration_args=one.arbitration_args.but(interval=interval))
        for name, one in named.items()
    }
    return tuple(_with(one, after.get(one.name)) for one in profiles)


def _of_jobs(
    profiles: Sequence[profile.Profile],
) -> dict[str, migration.MigrationControllerArgs]:
    """Return the arguments of profiles that evict by jobs, else of those that filter like them."""
    found = {}
    for one in profiles:
        given = one.arguments.get(models.MIGRATION_CONTROLLER)
        if isinstance(given, migration.MigrationControllerArgs):
            found[one.name] = given
    evicting = {one.name for one in profiles if one.evictor == models.MIGRATION_CONTROLLER}
    return {name: one for name, one in found.items() if name in evicting or not evicting}


def _counts(field: str, one: migration.MigrationControllerArgs) -> bool:
    """Whether a profile says something of a field: 0 jobs stands for any number of them."""
    is_left_out = field == "max_migrating_globally" and one.skips("MaxMigratingGlobally")
    return bool(getattr(one, field)) and not is_left_out


def _one(
    values: Collection[float],
    chosen: Callable[[Collection[float]], float],
    where: str,
    notes: Notes,
) -> float:
    """Return the value that holds, and warn where there are several."""
    found = chosen(values)
    if len(values) > 1:
        listed = ", ".join(f"{one:.12g}" for one in sorted(values))
        note = f"differs between profiles that share it ({listed}), and {found:.12g} holds for all"
        notes.warn(where, f"{note}; write the same in each")
    return found


def _with(one: profile.Profile, given: migration.MigrationControllerArgs | None) -> profile.Profile:
    if given is None:
        return one
    changed = {**one.arguments, models.MIGRATION_CONTROLLER: given}
    return dataclasses.replace(one, arguments=changed)
