"""`koord render in-place`: the folder, what the files say to each other, renewal."""

import stat

import pytest
import yaml

from certs import issue, renewal, rotation, store
from cli import main
from cli.install import in_place, in_place_files
from extender import settings as extender_settings
from process.configuration import settings
from process.runtime import clock as clocks

REQUIRED = ("--image", "registry.example.com/koord:1", "--server", "https://10.0.0.1:6443")
EXTENDER = "node/etc/kubernetes/koord/extender"
SCHEDULER = "node/etc/kubernetes/koord/scheduler"


def render(folder, *options):
    return main.main(["render", "in-place", "--to", str(folder), *REQUIRED, *options])


def loaded(path):
    return yaml.safe_load(path.read_text())


@pytest.fixture
def folder(tmp_path, capsys):
    assert render(tmp_path / "out") == 0
    capsys.readouterr()
    return tmp_path / "out"


def test_every_file_is_there_and_no_key_is_for_others(folder):
    found = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert {path for path in found if not path.startswith("pki/")} == {
        *(f"{EXTENDER}/{name}" for name in ("settings.yaml", "kubeconfig", "tls.crt", "tls.key")),
        f"{EXTENDER}/client-ca.crt",
        f"{EXTENDER}/scheduler.yaml",
        *(f"{SCHEDULER}/{name}" for name in ("config.yaml", "ca.crt", "client.crt", "client.key")),
        "node/etc/kubernetes/manifests/koord-extender.yaml",
        "patches/kube-scheduler+json.yaml",
        "cluster/login.yaml",
        "STEPS.md",
    }
    for path in folder.rglob("*.key"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_extender_takes_the_settings_and_trusts_the_scheduler_only(folder):
    file = folder / EXTENDER / "settings.yaml"
    model = extender_settings.Settings
    read = settings.load(model, file=file, environ={}, prefix="EXTENDER", flags=())
    assert (read.server.host, read.server.port) == ("127.0.0.1", 9211)
    assert read.server.tls is not None
    inside = {"tls.crt", "tls.key", "client-ca.crt"}
    tls = read.server.tls
    assert {str(tls.cert_file), str(tls.key_file), str(tls.client_ca_file)} == {
        f"/etc/koord/{name}" for name in inside
    }
    now = rotation.renew_at(*life(folder, "tls.crt"))
    pair = issue.Pair(
        (folder / EXTENDER / "tls.crt").read_bytes(), (folder / EXTENDER / "tls.key").read_bytes()
    )
    trusted = (folder / SCHEDULER / "ca.crt").read_bytes()
    assert issue.problem(pair, trusted, "127.0.0.1", now) is None
    bundle = (folder / EXTENDER / "client-ca.crt").read_bytes()
    client = issue.read((folder / SCHEDULER / "client.crt").read_bytes())
    assert any(issue.signed_by(client, authority) for authority in issue.read_all(bundle))
    assert issue.carries(
        (folder / SCHEDULER / "client.crt").read_bytes(),
        issue.Subject("scheduler", dns=("kube-scheduler",), client=True),
    )


def life(folder, name):
    certificate = issue.read((folder / EXTENDER / name).read_bytes())
    return (
        certificate.not_valid_before_utc.timestamp(),
        certificate.not_valid_after_utc.timestamp(),
    )


def test_the_scheduler_finds_its_files_where_the_patch_mounts_them(folder):
    flag, mount, volume = loaded(folder / "patches" / "kube-scheduler+json.yaml")
    config = loaded(folder / SCHEDULER / "config.yaml")
    assert mount["value"]["mountPath"] == volume["value"]["hostPath"]["path"]
    inside = f"{mount['value']['mountPath']}/"
    assert flag["value"] == f"--config={inside}config.yaml"
    for entry in config["extenders"]:
        assert entry["urlPrefix"] == "https://127.0.0.1:9211"
        for file in entry["tlsConfig"].values():
            assert file.startswith(inside)
            assert (folder / f"node{file}").exists()


def test_the_static_pod_needs_nothing_of_a_cluster(folder):
    pod = loaded(folder / "node/etc/kubernetes/manifests/koord-extender.yaml")
    spec = pod["spec"]
    (container,) = spec["containers"]
    assert spec["hostNetwork"] is True
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    volumes = {next(iter(set(volume) - {"name"})) for volume in spec["volumes"]}
    # A kubelet refuses static pods that name an account, a Secret or a ConfigMap.
    assert volumes == {"hostPath", "emptyDir"}
    assert "serviceAccountName" not in spec
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert container[probe]["httpGet"]["host"] == "127.0.0.1"


def test_the_patch_fits_the_manifest_that_kubeadm_writes(folder):
    mount = {"name": "kubeconfig", "mountPath": "/etc/kubernetes/scheduler.conf"}
    command = ["kube-scheduler", "--leader-elect=true"]
    before = {"containers": [{"command": command, "volumeMounts": [mount]}], "volumes": [{}]}
    for operation in loaded(folder / "patches" / "kube-scheduler+json.yaml"):
        assert operation["op"] == "add"
        target, parts = {"spec": before}, operation["path"].strip("/").split("/")
        assert parts.pop() == "-"
        for part in parts:
            target = target[int(part) if part.isdigit() else part]
        target.append(operation["value"])
    assert before["containers"][0]["command"][-1].startswith("--config=")
    assert len(before["volumes"]) == len(before["containers"][0]["volumeMounts"]) == 2


def test_the_login_is_that_of_the_account(folder):
    login = loaded(folder / EXTENDER / "kubeconfig")
    assert login["clusters"][0]["cluster"]["server"] == "https://10.0.0.1:6443"
    assert login["users"][0]["user"] == {"tokenFile": "/etc/koord-login/token"}
    secret = loaded(folder / "cluster" / "login.yaml")
    # No key of its own: a Secret of the type service-account-token would never expire.
    assert (secret["type"], secret.get("data")) == ("Opaque", None)
    name = secret["metadata"]["name"]
    steps = (folder / "STEPS.md").read_text()
    assert f"create token {in_place_files.ACCOUNT} --duration=720h" in steps
    assert f"--bound-object-kind=Secret --bound-object-name={name}" in steps


def test_the_extender_renews_its_token_in_the_one_folder_that_it_writes(folder):
    model = extender_settings.Settings
    file = folder / EXTENDER / "settings.yaml"
    read = settings.load(model, file=file, environ={}, prefix="EXTENDER", flags=())
    login = loaded(folder / EXTENDER / "kubeconfig")["users"][0]["user"]["tokenFile"]
    assert str(read.token.file) == login
    assert read.token.account == in_place_files.ACCOUNT
    assert read.token.secret == loaded(folder / "cluster" / "login.yaml")["metadata"]["name"]
    pod = loaded(folder / "node/etc/kubernetes/manifests/koord-extender.yaml")
    mounts = pod["spec"]["containers"][0]["volumeMounts"]
    writable = {one["mountPath"] for one in mounts if not one.get("readOnly")}
    assert writable == {str(read.token.file.parent), "/tmp"}


def test_only_the_name_of_kube_scheduler_is_let_in(folder):
    read = loaded(folder / EXTENDER / "settings.yaml")["server"]["tls"]
    client = (folder / SCHEDULER / "client.crt").read_bytes()
    subject = issue.Subject("scheduler", dns=tuple(read["clientNames"]), client=True)
    assert issue.carries(client, subject)


def test_an_authority_of_ten_years_gives_way_to_one_of_three(tmp_path, capsys):
    now = clocks.SystemClock().now()
    day = 24 * 3600.0
    old = rotation.Policy(3650 * day, 365 * day, 30 * day)
    subjects = [in_place._SERVER, in_place._CLIENT]
    keep, _ = renewal.advance(store.load(tmp_path / "pki"), subjects, now, old)
    store.save(tmp_path / "pki", keep)
    assert render(tmp_path) == 0
    assert "was made to live longer" in capsys.readouterr().out
    bundle = issue.read_all((tmp_path / EXTENDER / "client-ca.crt").read_bytes())
    lives = [(one.not_valid_after_utc - one.not_valid_before_utc).days for one in bundle]
    assert len(lives) == 2
    assert min(lives) < 3 * 365 + 2
    # Run again at once: nothing more to do.
    assert render(tmp_path) == 0
    assert "No certificate was due." in capsys.readouterr().out


def test_every_step_has_a_way_back_and_the_extender_comes_first(tmp_path, capsys):
    assert render(tmp_path) == 0
    shown = capsys.readouterr().out
    assert shown == (tmp_path / "STEPS.md").read_text()
    assert shown.count("Back:") == 4
    assert shown.index("koord-extender.yaml /etc/kubernetes/manifests/") < shown.index(
        "mv /etc/kubernetes/kube-scheduler.next.yaml"
    )
    assert str(tmp_path) in shown


def test_running_again_renews_nothing_before_its_time(folder, capsys):
    before = (folder / EXTENDER / "tls.crt").read_bytes()
    assert render(folder) == 0
    assert "No certificate was due." in capsys.readouterr().out
    assert (folder / EXTENDER / "tls.crt").read_bytes() == before


def test_a_lost_certificate_is_issued_anew_by_the_same_authority(folder, capsys):
    bundle = (folder / SCHEDULER / "ca.crt").read_bytes()
    (folder / "pki" / "scheduler.key").unlink()
    before = (folder / SCHEDULER / "client.crt").read_bytes()
    assert render(folder) == 0
    assert "scheduler has no certificate" in capsys.readouterr().out
    assert (folder / SCHEDULER / "client.crt").read_bytes() != before
    assert (folder / SCHEDULER / "ca.crt").read_bytes() == bundle
    assert len(store.load(folder / "pki").authorities) == 1


def test_options_reach_both_sides(tmp_path, capsys):
    options = ("--extender-url", "https://127.0.0.1:9300", "--health-port", "9400")
    assert render(tmp_path, *options, "--qps", "70", "--health-host", "0.0.0.0") == 0
    read = loaded(tmp_path / EXTENDER / "settings.yaml")
    assert (read["server"]["port"], read["health"]) == (9300, {"host": "0.0.0.0", "port": 9400})
    config = loaded(tmp_path / SCHEDULER / "config.yaml")
    assert config["extenders"][0]["urlPrefix"] == "https://127.0.0.1:9300"
    assert config["clientConnection"]["qps"] == 70
    pod = loaded(tmp_path / "node/etc/kubernetes/manifests/koord-extender.yaml")
    probe = pod["spec"]["containers"][0]["readinessProbe"]["httpGet"]
    assert probe == {"host": "127.0.0.1", "path": "/readyz", "port": 9400}


def test_the_present_configuration_is_merged(tmp_path, capsys):
    mine = tmp_path / "mine.yaml"
    mine.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        "parallelism: 4\npodInitialBackoffSeconds: 7\n"
    )
    assert render(tmp_path / "out", "--existing", str(mine)) == 0
    assert "note: podInitialBackoffSeconds was 7" in capsys.readouterr().err
    assert loaded(tmp_path / "out" / SCHEDULER / "config.yaml")["parallelism"] == 4


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        pytest.param(("--certificate-days", "30"), "from 120 to 150", id="short life"),
        pytest.param(("--server", "10.0.0.1"), "--server 10.0.0.1: give the", id="no address"),
        pytest.param(
            ("--extender-url", "https://elsewhere:1"), "https://127.0.0.1:PORT", id="elsewhere"
        ),
        pytest.param(
            ("--extender-url", "http://127.0.0.1:1"), "https://127.0.0.1:PORT", id="no TLS"
        ),
        pytest.param(("--qps", "0"), "--qps 0", id="scheduler option"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_written(
    options, sentence, tmp_path, capsys
):
    assert render(tmp_path / "out", *options) == 2
    assert sentence in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_written_is_named(tmp_path, capsys):
    (tmp_path / "out").write_text("a file")
    assert render(tmp_path / "out") == 2
    assert str(tmp_path / "out") in capsys.readouterr().err


def test_the_extender_gets_a_copy_of_what_the_scheduler_reads(tmp_path, capsys):
    assert render(tmp_path, "--scheduler-version", "v1.36.3") == 0
    copy = (tmp_path / EXTENDER / "scheduler.yaml").read_text()
    assert copy == (tmp_path / SCHEDULER / "config.yaml").read_text()
    told = loaded(tmp_path / EXTENDER / "settings.yaml")["scheduler"]
    assert told == {"configFile": "/etc/koord/scheduler.yaml", "version": "v1.36.3"}
    assert render(tmp_path, "--scheduler-version", "newest") == 2
    assert "--scheduler-version newest" in capsys.readouterr().err
