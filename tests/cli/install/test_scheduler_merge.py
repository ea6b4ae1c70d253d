"""The extender in a configuration that somebody already runs: kept, grown, refused."""

import copy

import pytest
import yaml

from api.kubernetes import scheduler_config
from cli import main
from cli.install import scheduler_merge

STOCK = scheduler_config.STOCK_WEIGHTS
OURS = scheduler_config.Options("https://127.0.0.1:9211", kubeconfig="/etc/kubernetes/s.conf")
EXISTING = {
    "apiVersion": scheduler_config.API_VERSION,
    "kind": scheduler_config.KIND,
    "parallelism": 8,
    "percentageOfNodesToScore": 30,
    "leaderElection": {"leaderElect": True, "leaseDuration": "30s"},
    "clientConnection": {"kubeconfig": "/mine", "qps": 60},
    "profiles": [
        {
            "schedulerName": "default-scheduler",
            "percentageOfNodesToScore": 50,
            "plugins": {
                "score": {
                    "disabled": [{"name": "ImageLocality"}],
                    "enabled": [{"name": "NodeResourcesFit", "weight": 5}],
                },
                "multiPoint": {
                    "enabled": [{"name": "Ours", "weight": 7}, {"name": "NodePorts"}],
                },
            },
            "pluginConfig": [
                {
                    "name": "NodeResourcesFit",
                    "args": {"scoringStrategy": {"type": "RequestedToCapacityRatio"}},
                }
            ],
        }
    ],
    "extenders": [
        {"urlPrefix": "http://gpu", "filterVerb": "f", "prioritizeVerb": "p", "weight": 3},
        {"urlPrefix": "http://other", "filterVerb": "f", "ignorable": True},
    ],
}


def existing(**changes):
    return {**copy.deepcopy(EXISTING), **changes}


def minimal(**profile):
    kind = {"apiVersion": scheduler_config.API_VERSION, "kind": scheduler_config.KIND}
    return {**kind, "profiles": [profile]}


def merged(document, *, beside=False, options=OURS):
    return scheduler_merge.merge(document, options, beside=beside)


def weights(document):
    """The weight of every scorer as kube-scheduler would find it."""
    plugins = document["profiles"][0]["plugins"]
    found = {}
    for point in ("multiPoint", "score"):
        for entry in plugins.get(point, {}).get("enabled", ()):
            found[entry["name"]] = entry.get("weight")
    return found


def test_what_the_owner_wrote_is_kept():
    document = existing()
    result = merged(document).document
    assert document == EXISTING
    for key in ("parallelism", "percentageOfNodesToScore", "leaderElection"):
        assert result[key] == EXISTING[key]
    assert result["clientConnection"] == {"kubeconfig": "/mine", "qps": 60, "burst": 120}
    profile, before = result["profiles"][0], EXISTING["profiles"][0]
    for key in ("schedulerName", "percentageOfNodesToScore", "pluginConfig"):
        assert profile[key] == before[key]
    assert profile["plugins"]["score"]["disabled"] == [{"name": "ImageLocality"}]


def test_every_scorer_grows_ten_times_and_nothing_else():
    found = weights(merged(existing()).document)
    rest = {name: weight for name, weight in STOCK.items() if name != "ImageLocality"}
    expected = {name: 10 * weight for name, weight in rest.items()}
    assert found == {**expected, "NodeResourcesFit": 50, "Ours": 70, "NodePorts": None}


def test_other_extenders_stay_first_and_grow_alike():
    result = merged(existing())
    first, second, deciding, binding = result.document["extenders"]
    assert first == {**EXISTING["extenders"][0], "weight": 30}
    assert second == EXISTING["extenders"][1]
    assert [deciding, binding] == scheduler_config.extenders(OURS)
    assert result.others == 2
    assert result.notes == ()


@pytest.mark.parametrize(
    ("plugins", "expected"),
    [
        pytest.param({}, {name: 10 * weight for name, weight in STOCK.items()}, id="stock"),
        pytest.param(
            {"score": {"disabled": [{"name": "*"}], "enabled": [{"name": "ImageLocality"}]}},
            {"ImageLocality": 10},
            id="one scorer only",
        ),
        pytest.param(
            {
                "multiPoint": {
                    "disabled": [{"name": "*"}],
                    "enabled": [
                        {"name": "NodeResourcesFit", "weight": 2},
                        {"name": "SchedulingGates"},
                        {"name": "DefaultPreemption"},
                    ],
                }
            },
            {"NodeResourcesFit": 20, "SchedulingGates": None, "DefaultPreemption": None},
            id="chosen by hand",
        ),
        pytest.param(
            {
                "multiPoint": {
                    "disabled": [{"name": "TaintToleration"}],
                    "enabled": [{"name": "TaintToleration", "weight": 9}],
                }
            },
            {name: 10 * weight for name, weight in {**STOCK, "TaintToleration": 9}.items()},
            id="another weight",
        ),
    ],
)
def test_weights_grow_from_what_was_in_force(plugins, expected):
    assert weights(merged(minimal(plugins=plugins)).document) == expected


def test_a_file_without_profiles_is_the_stock_scheduler():
    document = minimal()
    del document["profiles"]
    result = merged(document)
    assert weights(result.document) == {name: 10 * weight for name, weight in STOCK.items()}
    assert result.document["clientConnection"]["kubeconfig"] == "/etc/kubernetes/s.conf"
    assert "leaderElection" not in result.document


@pytest.mark.parametrize(
    ("before", "after", "noted"),
    [
        pytest.param({}, {"podMaxBackoffSeconds": 2}, False, id="stock"),
        pytest.param({"podMaxBackoffSeconds": 1}, {"podMaxBackoffSeconds": 1}, False, id="less"),
        pytest.param(
            {"podInitialBackoffSeconds": 5, "podMaxBackoffSeconds": 60},
            {"podInitialBackoffSeconds": 2, "podMaxBackoffSeconds": 2},
            True,
            id="a slow start",
        ),
    ],
)
def test_back_off_only_ever_shrinks(before, after, noted):
    result = merged({**minimal(), **before})
    assert {k: v for k, v in result.document.items() if "Backoff" in k} == after
    assert bool(result.notes) == noted


def test_beside_takes_its_own_lease_and_account():
    options = scheduler_config.Options(
        "http://127.0.0.1:9211", lease=scheduler_config.Lease("n", "l")
    )
    document = existing()
    document["profiles"][0]["schedulerName"] = "packing"
    result = merged(document, beside=True, options=options)
    assert result.document["leaderElection"] == {
        "leaderElect": True,
        "leaseDuration": "30s",
        "resourceName": "l",
        "resourceNamespace": "n",
    }
    assert result.document["clientConnection"]["kubeconfig"] == ""
    assert "clientConnection.kubeconfig was /mine" in result.notes[0]


def test_what_works_less_well_is_noted():
    plugins = {"postFilter": {"disabled": [{"name": "DefaultPreemption"}]}}
    (note,) = merged(minimal(plugins=plugins)).notes
    assert "DefaultPreemption is disabled" in note


def disabled(point, *names):
    return {"profiles": [{"plugins": {point: {"disabled": [{"name": name} for name in names]}}}]}


@pytest.mark.parametrize(
    ("changes", "sentences"),
    [
        pytest.param({"kind": "Deployment"}, ["this is no KubeScheduler"], id="kind"),
        pytest.param(
            {"apiVersion": "kubescheduler.config.k8s.io/v1beta3"},
            ["1.29 has dropped it; write kubescheduler.config.k8s.io/v1"],
            id="beta",
        ),
        pytest.param({"apiVersion": "v1"}, ["apiVersion v1: give"], id="version"),
        pytest.param(
            {"extenders": [{"urlPrefix": "http://x", "bindVerb": "b"}]},
            ["extenders[0].bindVerb b: kube-scheduler allows one", "--mode beside"],
            id="another binds",
        ),
        pytest.param(
            {"extenders": [{"urlPrefix": "http://x", "bindVerb": "b", "ignorable": True}]},
            ["could moreover be skipped"],
            id="ignorable bind",
        ),
        pytest.param(
            {"extenders": [{"urlPrefix": "https://127.0.0.1:9211/"}]},
            ["calls the extender already"],
            id="merged before",
        ),
        pytest.param(
            disabled("filter", "NodeResourcesFit"), ["NodeResourcesFit is disabled"], id="fit"
        ),
        pytest.param(
            disabled("multiPoint", "*"),
            ["NodeResourcesFit is disabled", "SchedulingGates is disabled"],
            id="everything",
        ),
        pytest.param(disabled("preEnqueue", "*"), ["SchedulingGates is disabled"], id="gates"),
        pytest.param({"profiles": "x"}, ["profiles: expected a list of mappings"], id="list"),
        pytest.param(
            {"profiles": [{"plugins": {"score": {"enabled": ["x"]}}}]},
            ["profiles[0].plugins.score.enabled: expected a list of entries with a name"],
            id="entries",
        ),
        pytest.param(
            {"profiles": [{"plugins": {"score": ["x"]}}]},
            ["profiles[0].plugins.score.enabled"],
            id="point",
        ),
        pytest.param({"profiles": [{"plugins": 1}]}, ["plugins: expected a mapping"], id="plugins"),
        pytest.param(
            {"profiles": [{"pluginConfig": {}, "plugins": {}}, {"pluginConfig": "x"}]},
            ["profiles[1].pluginConfig: expected"],
            id="arguments",
        ),
        pytest.param({"leaderElection": []}, ["leaderElection: expected a mapping"], id="lease"),
        pytest.param(
            {"podMaxBackoffSeconds": "2s"}, ["podMaxBackoffSeconds: expected"], id="seconds"
        ),
        pytest.param(
            {"extenders": [{"urlPrefix": "http://x", "weight": 2**31}]},
            ["extenders[0].weight: weight 2147483648 cannot be taken 10 times"],
            id="weight",
        ),
    ],
)
def test_what_cannot_work_is_refused(changes, sentences):
    with pytest.raises(scheduler_merge.MergeError) as refusal:
        merged({**minimal(), **changes})
    for sentence in sentences:
        assert sentence in str(refusal.value)


def test_beside_never_serves_the_stock_name():
    with pytest.raises(scheduler_merge.MergeError, match="both would place the same pods"):
        merged(minimal(), beside=True)


def test_the_command_prints_file_and_notes(capsys, tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text(yaml.safe_dump({**EXISTING, "podInitialBackoffSeconds": 5}))
    arguments = ["render", "scheduler-config", "--mode", "in-place", "--existing", str(file)]
    assert main.main(arguments) == 0
    shown = capsys.readouterr()
    assert "note: podInitialBackoffSeconds was 5" in shown.err
    assert "# Note: podInitialBackoffSeconds was 5" in shown.out
    assert yaml.safe_load(shown.out)["parallelism"] == 8


@pytest.mark.parametrize(
    ("content", "arguments", "sentence"),
    [
        pytest.param("{", [], "cannot be read", id="no YAML"),
        pytest.param("kind: Pod", [], "this is no KubeSchedulerConfiguration", id="other kind"),
        pytest.param("{}", ["--scheduler-name", "x"], "those of the file", id="names"),
    ],
)
def test_the_command_says_what_is_wrong(content, arguments, sentence, capsys, tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text(content)
    assert main.main(["render", "scheduler-config", "--existing", str(file), *arguments]) == 2
    assert sentence in capsys.readouterr().err


KOORDINATORS = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: koord-scheduler
  pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: LeastAllocated}}
  - name: LoadAwareScheduling
    args: {usageThresholds: {cpu: 65}}
  - {name: ElasticQuota}
  plugins:
    queueSort: {disabled: [{name: "*"}], enabled: [{name: PrioritySort}]}
    filter: {enabled: [{name: Reservation}, {name: LoadAwareScheduling}]}
    postFilter:
      disabled: [{name: "*"}]
      enabled: [{name: Coscheduling}, {name: DefaultPreemption}]
    score: {enabled: [{name: Reservation, weight: 5000}, {name: NodeAffinity, weight: 4}]}
    bind: {disabled: [{name: "*"}], enabled: [{name: Reservation}, {name: DefaultBinder}]}
"""


def test_plugins_of_koordinators_scheduler_are_taken_out_and_named():
    result = merged(yaml.safe_load(KOORDINATORS), beside=True)
    (profile,) = result.document["profiles"]
    assert [one["name"] for one in profile["pluginConfig"]] == ["NodeResourcesFit"]
    plugins = profile["plugins"]
    assert plugins["filter"]["enabled"] == []
    assert plugins["postFilter"]["enabled"] == [{"name": "DefaultPreemption"}]
    assert plugins["score"]["enabled"] == [{"name": "NodeAffinity", "weight": 40}]
    assert plugins["bind"]["enabled"] == [{"name": "DefaultBinder"}]
    (note,) = result.notes
    assert note == (
        "profiles[0]: Coscheduling, ElasticQuota, LoadAwareScheduling, Reservation are no plug-ins"
        " of kube-scheduler and are taken out; name them for the extender in ConfigMap"
        " koord-scheduler-config"
    )
