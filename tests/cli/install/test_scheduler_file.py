"""`koord render scheduler-config`: the committed files, the options, what is refused."""

from pathlib import Path

import pytest
import yaml

from cli import main
from extender import settings as extender_settings

SHIPPED = Path(__file__).parents[3] / "deploy" / "scheduler"
MODES = ("beside", "in-place")


def rendered(capsys, *arguments):
    assert main.main(["render", "scheduler-config", *arguments]) == 0
    return yaml.safe_load(capsys.readouterr().out)


def refused(capsys, *arguments):
    assert main.main(["render", "scheduler-config", *arguments]) == 2
    return capsys.readouterr().err


@pytest.mark.parametrize("mode", MODES)
def test_the_shipped_file_is_what_the_command_writes(mode, tmp_path):
    written = tmp_path / "scheduler.yaml"
    assert main.main(["render", "scheduler-config", "--mode", mode, "--to", str(written)]) == 0
    assert (SHIPPED / f"{mode}.yaml").read_text() == written.read_text(), (
        f"run koord render scheduler-config --mode {mode} --to deploy/scheduler/{mode}.yaml"
    )


@pytest.mark.parametrize("mode", MODES)
def test_the_scheduler_always_waits_longer_than_the_extender_works(mode, capsys):
    deciding, binding = rendered(capsys, "--mode", mode)["extenders"]
    defaults = extender_settings.Settings()
    assert seconds(deciding) > defaults.freshness.proof_seconds
    assert seconds(binding) > defaults.bind.deadline_seconds


def test_timeouts_follow_the_settings_of_the_extender(capsys, tmp_path):
    file = tmp_path / "settings.yaml"
    file.write_text("bind: {deadlineSeconds: 50}\nfreshness: {proofSeconds: 4}\n")
    config = rendered(capsys, "--extender-settings", str(file))
    assert [seconds(found) for found in config["extenders"]] == [5, 55]


def seconds(found):
    return float(found["httpTimeout"].removesuffix("s"))


def test_beside_serves_its_own_profile_by_its_own_lease(capsys):
    config = rendered(capsys)
    assert [profile["schedulerName"] for profile in config["profiles"]] == ["koord-scheduler"]
    assert config["leaderElection"]["resourceName"] == "koord-scheduler"
    assert config["leaderElection"]["resourceNamespace"] == "koordinator-system"


def test_in_place_uses_the_lease_and_the_login_of_the_stock_scheduler(capsys):
    config = rendered(capsys, "--mode", "in-place")
    assert config["leaderElection"] == {"leaderElect": True}
    assert config["clientConnection"]["kubeconfig"] == "/etc/kubernetes/scheduler.conf"
    assert {entry["enableHTTPS"] for entry in config["extenders"]} == {True}


def test_every_option_reaches_the_file(capsys):
    config = rendered(
        capsys,
        *("--extender-url", "https://[::1]:1/", "--scheduler-name", "a", "--scheduler-name", "b"),
        *("--qps", "60", "--burst", "70", "--percentage-of-nodes-to-score", "30"),
        *("--max-backoff", "3", "--filter-timeout", "3", "--bind-timeout", "40"),
        *("--lease-namespace", "ns", "--lease-name", "lease", "--scheduler-kubeconfig", "/k"),
        *("--tls-ca", "/ca", "--tls-cert", "/c", "--tls-key", "/k", "--tls-server-name", "e"),
    )
    assert [profile["schedulerName"] for profile in config["profiles"]] == ["a", "b"]
    assert config["clientConnection"] == {"kubeconfig": "/k", "qps": 60, "burst": 70}
    assert config["percentageOfNodesToScore"] == 30
    assert config["podMaxBackoffSeconds"] == 3
    assert config["leaderElection"]["resourceName"] == "lease"
    assert config["leaderElection"]["resourceNamespace"] == "ns"
    for entry, timeout in zip(config["extenders"], ("3s", "40s"), strict=True):
        assert entry["urlPrefix"] == "https://[::1]:1"
        assert entry["httpTimeout"] == timeout
        assert entry["tlsConfig"] == {
            "caFile": "/ca",
            "certFile": "/c",
            "keyFile": "/k",
            "serverName": "e",
        }


STOCK = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [{"schedulerName": "koord-scheduler"}],
}


def config_map(**data):
    metadata = {"name": "koord-scheduler-config", "namespace": "koordinator-system"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def test_a_config_map_is_taken_for_what_it_holds(capsys, tmp_path):
    """As `kubectl get configmap koord-scheduler-config -o yaml` prints it."""
    bare, held = tmp_path / "bare.yaml", tmp_path / "held.yaml"
    bare.write_text(yaml.safe_dump(STOCK))
    data = {"koord-scheduler-config": yaml.safe_dump(STOCK), "other": "a: b"}
    held.write_text(yaml.safe_dump(config_map(**data)))
    found = rendered(capsys, "--existing", str(held))
    assert found == rendered(capsys, "--existing", str(bare))
    assert [profile["schedulerName"] for profile in found["profiles"]] == ["koord-scheduler"]
    assert len(found["extenders"]) == 2


@pytest.mark.parametrize("data", [{}, {"a": "b: c"}, dict.fromkeys("ab", yaml.safe_dump(STOCK))])
def test_a_config_map_that_holds_none_or_several_is_refused(capsys, tmp_path, data):
    file = tmp_path / "map.yaml"
    file.write_text(yaml.safe_dump(config_map(**data)))
    said = refused(capsys, "--existing", str(file))
    assert "of kind KubeSchedulerConfiguration; give one that holds one" in said


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        pytest.param(["--bind-timeout", "25"], "give at least 26", id="bind timeout"),
        pytest.param(["--filter-timeout", "1"], "give at least 2", id="filter timeout"),
        pytest.param(["--qps", "0"], "--qps 0: give a number from 1", id="qps"),
        pytest.param(["--percentage-of-nodes-to-score", "101"], "from 0 to 100", id="share"),
        pytest.param(["--max-backoff", "0"], "--max-backoff 0", id="backoff"),
        pytest.param(["--scheduler-name", "default-scheduler"], "same pods", id="stock name"),
        pytest.param(["--extender-url", "https://x"], "--tls-ca", id="unverified"),
        pytest.param(["--tls-ca", "/ca"], "https:// address", id="files without TLS"),
        pytest.param(
            ["--extender-url", "https://x", "--tls-ca", "/ca", "--tls-key", "/k"],
            "give both or none",
            id="half a pair",
        ),
        pytest.param(["--extender-settings", "/missing"], "--extender-settings", id="no settings"),
        pytest.param(["--to", "/missing/folder/file"], "/missing/folder/file", id="no folder"),
    ],
)
def test_what_cannot_work_is_refused_with_the_remedy(arguments, sentence, capsys):
    assert sentence in refused(capsys, *arguments)
