"""Configuration files load as the reference loads them; all faults are reported together."""

import pathlib

import hypothesis
import pytest
import yaml
from hypothesis import strategies as st

from descheduler.configuration import document, points
from tests import draws

EXAMPLES = pathlib.Path(__file__).parent / "examples"


def read(whole):
    return document.read(whole if isinstance(whole, str) else yaml.safe_dump(whole))


def configured(*profiles, **fields):
    return {
        "apiVersion": "descheduler/v1alpha2",
        "kind": "DeschedulerConfiguration",
        "profiles": list(profiles),
    } | fields


def profile(config=(), **plugins):
    return {"name": "p", "plugins": plugins, "pluginConfig": list(config)}


def enabling(*names):
    return {"enabled": [{"name": name} for name in names]}


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.yaml")), ids=lambda file: file.stem)
def test_examples_load_without_a_warning(file):
    reading = document.read(file.read_text())
    assert (reading.faults, reading.warnings) == ((), ())


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.yaml")), ids=lambda file: file.stem)
def test_what_is_effective_reads_to_the_same(file):
    first = document.read(file.read_text()).configuration
    again = read(document.effective(first))
    assert again.faults == ()
    assert again.configuration == first


def test_the_shipped_example_configures_load_and_does_not_enable_it():
    found = document.read((EXAMPLES / "shipped.yaml").read_text()).configuration
    (one,) = found.profiles
    assert found.head.descheduling_interval == 10.0
    assert one.enabled == {
        points.DESCHEDULE: (),
        points.BALANCE: (),
        points.FILTER: ("MigrationController",),
        points.EVICT: ("MigrationController",),
    }
    assert one.arguments.keys() == {"MigrationController"}
    assert one.arguments["MigrationController"].evict_qps == 10.0


@pytest.mark.parametrize("text", ["", "---\n", "# nothing\n", "{}", "profiles: []"])
def test_nothing_configures_the_defaults(text):
    found = document.read(text).configuration
    (one,) = found.profiles
    assert (one.name, one.evictor) == ("koord-descheduler", "MigrationController")
    assert one.arguments["MigrationController"].default_job_mode == "ReservationFirst"
    assert (found.head.descheduling_interval, found.head.dry_run) == (0.0, False)
    assert found.head.leader_election.resource_name == "koord-descheduler"
    assert found.head.healthz_bind_address == "0.0.0.0:10251"


@pytest.mark.parametrize(
    ("point", "said", "expected"),
    [
        pytest.param("filter", {}, ["MigrationController"], id="default"),
        pytest.param(
            "filter",
            enabling("DefaultEvictor", "MigrationController"),
            ["MigrationController", "DefaultEvictor"],
            id="a default keeps its place",
        ),
        pytest.param(
            "filter",
            {"disabled": [{"name": "*"}]} | enabling("DefaultEvictor", "MigrationController"),
            ["DefaultEvictor", "MigrationController"],
            id="all defaults dropped",
        ),
        pytest.param(
            "evict",
            {"disabled": [{"name": "MigrationController"}]} | enabling("DefaultEvictor"),
            ["DefaultEvictor"],
            id="one default dropped",
        ),
        pytest.param(
            "balance",
            enabling("RemoveDuplicates", "LowNodeLoad"),
            ["RemoveDuplicates", "LowNodeLoad"],
            id="in their order",
        ),
    ],
)
def test_plug_ins_are_merged_with_the_defaults(point, said, expected):
    reading = read(configured(profile(**{point: said})))
    assert reading.faults == ()
    assert list(reading.configuration.profiles[0].enabled[point]) == expected


def test_profiles_have_plug_ins_and_arguments_of_their_own():
    first = profile(
        [{"name": "LowNodeLoad", "args": {"numberOfNodes": 3}}], balance=enabling("LowNodeLoad")
    )
    second = profile(balance=enabling("LowNodeLoad")) | {"name": "q"}
    found = read(configured(first, second)).configuration
    numbers = [one.arguments["LowNodeLoad"].number_of_nodes for one in found.profiles]
    assert [one.name for one in found.profiles] == ["p", "q"]
    assert numbers == [3, 0]


ARGS = {"apiVersion": "descheduler/v1alpha2"}
FAULTY = [
    ("a: [", "configuration: is not YAML"),
    ("[1]", "configuration: is [1]; write a DeschedulerConfiguration"),
    ("kind: Pod", 'configuration.kind: is "Pod", must be DeschedulerConfiguration'),
    ("apiVersion: descheduler/v1", "configuration.apiVersion: is"),
    (configured(dryrun=True), "configuration.dryrun: does not exist; did you mean dryRun?"),
    (configured(color=1), "configuration.color: does not exist; remove it"),
    (configured(deschedulingInterval="1x"), "configuration.deschedulingInterval: is"),
    (configured(deschedulingInterval="-1s"), "must be at least 0"),
    (configured(maxNoOfPodsToEvictTotal=-1), "configuration.maxNoOfPodsToEvictTotal: is -1"),
    (
        configured(nodeSelector={"matchLabels": {"?": ""}}),
        "configuration.nodeSelector: matchLabels",
    ),
    (configured(healthzBindAddress="localhost"), 'healthzBindAddress: is "localhost": has no port'),
    (configured(metricsBindAddress="a b:1"), 'metricsBindAddress: is "a b:1": names no host'),
    (configured(metricsBindAddress="::1:99999999"), "metricsBindAddress: is"),
    (
        configured(leaderElection={"leaseDuration": "5s"}),
        "configuration.leaderElection: leaseDuration: must be longer than renewDeadline",
    ),
    (
        configured(leaderElection={"renewDeadline": "2s"}),
        "configuration.leaderElection: renewDeadline: must be 1.2 times retryPeriod at least",
    ),
    (configured(profile(["LowNodeLoad"])), 'pluginConfig[0]: is "LowNodeLoad"; write an object'),
    (configured(profile(), profile()), 'profiles[1].name: is "p" like configuration.profiles[0]'),
    (configured(profile(), {}), "profiles[1].name: is missing beside other profiles; name each"),
    (configured("p"), 'configuration.profiles[0]: is "p"; write an object'),
    (configured({"nodeSelector": {"x": 1}}), "profiles[0].nodeSelector.x: does not exist"),
    (configured({"plugins": {"score": {}}}), "profiles[0].plugins.score: does not exist"),
    (
        configured(profile(balance=enabling("LowNodeLod"))),
        'balance.enabled[0].name: is "LowNodeLod", which is no plug-in; did you mean LowNodeLoad?',
    ),
    (
        configured(profile(balance=enabling("LowNodeLoad", "LowNodeLoad"))),
        'plugins.balance.enabled[1]: enables "LowNodeLoad" a second time; remove one',
    ),
    (
        configured(profile(deschedule=enabling("LowNodeLoad"))),
        "LowNodeLoad does not extend deschedule; enable it at balance",
    ),
    (
        configured(profile(evict=enabling("DefaultEvictor"))),
        "plugins.evict: exactly one plug-in evicts, and MigrationController, DefaultEvictor would",
    ),
    (
        configured(profile(evict={"disabled": [{"name": "*"}]})),
        "plugins.evict: exactly one plug-in evicts, and none would",
    ),
    (
        configured(profile([{"name": "LowNodeLoad"}, {"name": "LowNodeLoad"}])),
        'pluginConfig[1]: is for "LowNodeLoad" like configuration.profiles[0].pluginConfig[0]',
    ),
    (
        configured(
            profile([{"name": "LowNodeLoad", "args": ARGS | {"kind": "DefaultEvictorArgs"}}])
        ),
        'pluginConfig[0].args.kind: is "DefaultEvictorArgs", must be LowNodeLoadArgs',
    ),
    (
        configured(profile([{"name": "MigrationController", "args": {"evictBurst": 0}}])),
        "pluginConfig[0].args.evictBurst: is 0, must be at least 1",
    ),
    (configured(profile([{"args": {}}])), "pluginConfig[0].name: is missing; give it a value"),
    (
        configured(profile([{"name": "LowNodeLoad", "arg": {}}])),
        "pluginConfig[0].arg: does not exist",
    ),
    (
        configured(profile(deschedule=enabling("PodLifeTime"))),
        "pluginConfig, which has no entry for PodLifeTime: there is no criterion",
    ),
]


@pytest.mark.parametrize(
    ("whole", "said"), [pytest.param(*one, id=str(index)) for index, one in enumerate(FAULTY)]
)
def test_what_is_wrong_is_named_with_its_remedy(whole, said):
    reading = read(whole)
    assert reading.configuration is None
    assert said in "\n".join(map(str, reading.faults))


def test_faults_of_all_parts_are_told_together():
    wrong = configured(
        profile(
            [{"name": "LowNodeLoad", "args": {"numberOfNodes": -1, "nodeFit": "yes"}}],
            evict=enabling("DefaultEvictor"),
        ),
        {"plugins": {"filter": enabling("Nothing")}},
        dryRun="no",
    )
    assert len(read(wrong).faults) == 6


def test_arguments_of_an_unknown_plug_in_are_warned_of():
    reading = read(configured(profile([{"name": "Mine", "args": {"any": "thing"}}])))
    assert reading.faults == ()
    (warning,) = reading.warnings
    assert warning.startswith('configuration.profiles[0].pluginConfig[0].name: is "Mine"')


def test_an_unknown_plug_in_that_is_disabled_is_warned_of():
    reading = read(configured(profile(filter={"disabled": [{"name": "Mine"}]})))
    assert reading.faults == ()
    (warning,) = reading.warnings
    assert "plugins.filter.disabled[0].name" in warning


@pytest.mark.parametrize(
    ("names", "opponents"),
    [
        pytest.param(["HighNodeUtilization", "LowNodeLoad"], ["LowNodeLoad"], id="measured load"),
        pytest.param(["LowNodeUtilization", "LowNodeLoad"], [], id="both fill nodes"),
        pytest.param(["HighNodeUtilization"], [], id="one alone"),
    ],
)
def test_plug_ins_that_undo_each_other_are_warned_of(names, opponents):
    thresholds = {
        "HighNodeUtilization": {"thresholds": {"cpu": 20}},
        "LowNodeUtilization": {"thresholds": {"cpu": 20}, "targetThresholds": {"cpu": 50}},
        "LowNodeLoad": {"lowThresholds": {"cpu": 20}, "highThresholds": {"cpu": 50}},
    }
    given = [{"name": name, "args": thresholds[name]} for name in names]
    reading = read(configured(profile(given, balance=enabling(*names))))
    assert reading.faults == ()
    assert list(reading.warnings) == [
        "configuration.profiles[0].plugins.balance: HighNodeUtilization empties nodes that"
        f" {name} fills; give them profiles with different nodes"
        for name in opponents
    ]


def test_times_of_the_election_do_not_count_without_one():
    off = {"leaderElect": False, "leaseDuration": "1s"}
    assert read(configured(leaderElection=off)).faults == ()


KEYS = st.sampled_from(
    [
        *("apiVersion", "kind", "profiles", "name", "plugins", "pluginConfig", "args", "evict"),
        *("enabled", "disabled", "filter", "nodeSelector", "matchLabels", "LowNodeLoad", "x"),
    ]
)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | KEYS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=20,
)


@hypothesis.settings(max_examples=draws.at_least(100), deadline=None)
@hypothesis.given(st.dictionaries(KEYS, PLAIN, max_size=4))
def test_any_document_is_read_or_refused(whole):
    reading = read(whole)
    assert (reading.configuration is None) == bool(reading.faults)
