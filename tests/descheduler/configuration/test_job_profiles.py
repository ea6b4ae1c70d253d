"""With which arguments the jobs of each profile are carried out, and which all of them share."""

import pytest
import yaml

from descheduler.configuration import document, job_profiles

BY_EVICTION = {
    "evict": {"enabled": [{"name": "DefaultEvictor"}], "disabled": [{"name": "*"}]},
}


def read(**profiles):
    """Read profiles, each with its arguments; those that name no job evict without one."""
    written = [
        {
            "name": name,
            "plugins": BY_EVICTION if name.startswith("direct") else {},
            "pluginConfig": [{"name": "MigrationController", "args": args}],
        }
        for name, args in profiles.items()
    ]
    found = document.read(yaml.safe_dump({"profiles": written}))
    assert found.faults == ()
    return found


def arguments(**profiles):
    return job_profiles.arguments(read(**profiles).configuration.profiles)


def test_each_profile_has_its_arguments_and_the_first_is_for_jobs_that_name_none():
    found = arguments(a={"defaultJobTTL": "1m"}, b={"defaultJobTTL": "2m"})
    ttls = {name: found.of(name).default_job_ttl for name in ("a", "b", "c", "", "x" * 10_000)}
    assert ttls == {"a": 60, "b": 120, "c": 60, "": 60, "x" * 10_000: 60}


def test_a_profile_that_evicts_without_jobs_says_nothing_about_jobs():
    found = arguments(direct={"defaultJobTTL": "1m"}, b={"defaultJobTTL": "2m"})
    assert (found.otherwise.default_job_ttl, list(found.named)) == (120, ["b"])
    alone = arguments(direct={"defaultJobTTL": "1m"})
    assert alone.otherwise.default_job_ttl == 60


def test_without_any_the_defaults_hold():
    found = job_profiles.arguments(())
    assert (found.named, found.otherwise.default_job_ttl) == ({}, 300)
    assert found.otherwise.object_limiters


SHARED = {
    "least evictQPS": ({"evictQPS": 20}, {"evictQPS": 2}, "evict_qps", 2),
    "a default is a value as well": ({"evictQPS": 20}, {}, "evict_qps", 10),
    "least evictBurst": ({"evictBurst": 3}, {"evictBurst": 2}, "evict_burst", 2),
    "most workers": (
        {"maxConcurrentReconciles": 3},
        {"maxConcurrentReconciles": 8},
        "max_concurrent_reconciles",
        8,
    ),
    "least jobs": (
        {"maxMigratingGlobally": 5},
        {"maxMigratingGlobally": 4},
        "max_migrating_globally",
        4,
    ),
}


@pytest.mark.parametrize(("one", "other", "field", "value"), SHARED.values(), ids=SHARED)
def test_what_profiles_share_is_equal_in_all_and_a_difference_is_told(one, other, field, value):
    for profiles in ({"a": one, "b": other}, {"b": other, "a": one}):
        found = read(**profiles)
        given = job_profiles.arguments(found.configuration.profiles)
        assert {getattr(each, field) for each in given.all()} == {value}
        (warning,) = found.warnings
        assert f"{value:g} holds for all; write the same in each" in warning
        again = document.read(yaml.safe_dump(document.effective(found.configuration)))
        assert (again.configuration, again.warnings) == (found.configuration, ())


def test_the_shortest_interval_of_arbitration_holds():
    found = read(a={}, b={"arbitrationArgs": {"interval": "100ms"}})
    given = job_profiles.arguments(found.configuration.profiles)
    assert {one.arbitration_args.interval for one in given.all()} == {0.1}
    assert "arbitrationArgs.interval: differs" in found.warnings[0]


@pytest.mark.parametrize(
    ("one", "other", "most"),
    [
        ({"maxMigratingGlobally": 5}, {}, 5),
        ({"maxMigratingGlobally": 5}, {"maxMigratingGlobally": 0}, 5),
        (
            {"maxMigratingGlobally": 5},
            {"maxMigratingGlobally": 2, "skipEvictionGates": ["MaxMigratingGlobally"]},
            5,
        ),
        ({}, {}, None),
    ],
    ids=["missing", "not limited", "left out", "nowhere"],
)
def test_the_limit_of_all_jobs_holds_for_profiles_that_do_not_write_it(one, other, most):
    found = read(a=one, b=other)
    given = job_profiles.arguments(found.configuration.profiles)
    assert {each.max_migrating_globally for each in given.all()} == {most}
    assert found.warnings == ()


def test_a_profile_that_evicts_without_jobs_shares_nothing():
    found = read(direct={"evictQPS": 1, "maxMigratingGlobally": 1}, b={}, c={"evictQPS": 5})
    given = [one.arguments["MigrationController"] for one in found.configuration.profiles]
    assert [(one.evict_qps, one.max_migrating_globally) for one in given] == [
        (1, 1),
        (5, None),
        (5, None),
    ]
    (warning,) = found.warnings
    assert "evictQPS: differs between profiles that share it (5, 10), and 5 holds" in warning
