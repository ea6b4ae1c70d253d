"""Which programs an end-to-end run takes, without building or running any of them."""

import stat

import pytest

from tests.e2e import binaries, golang

HELD = "#!/bin/sh\necho Kubernetes v1.33.7\n"


@pytest.fixture
def home(tmp_path, monkeypatch):
    """An empty cache and no wishes."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.delenv("K8S_VERSION", raising=False)
    return tmp_path


def programs(folder, *names):
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_text(HELD)
        (folder / name).chmod((folder / name).stat().st_mode | stat.S_IXUSR)
    return folder


@pytest.fixture
def assets(home, monkeypatch):
    folder = programs(home / "assets", "etcd", "kube-apiserver", "kubectl")
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(folder))
    return folder


def test_a_release_may_be_asked_for(home, monkeypatch):
    assert binaries.version() == binaries.DEFAULT_VERSION
    monkeypatch.setenv("K8S_VERSION", "v1.34.4")
    assert binaries.version() == "1.34.4"


def test_assets_tell_their_release(assets):
    assert binaries.version() == "1.33.7"


def test_assets_of_another_release_than_asked_for_are_refused(assets, monkeypatch):
    monkeypatch.setenv("K8S_VERSION", "1.36.3")
    with pytest.raises(golang.BuildError, match=r"holds Kubernetes 1.33.7, but .* asks for 1.36.3"):
        binaries.version()


def test_assets_without_an_api_server_are_refused(assets):
    (assets / "kube-apiserver").unlink()
    with pytest.raises(golang.BuildError, match="lacks kube-apiserver; name a folder that holds"):
        binaries.version()


def test_nothing_is_found_before_it_is_built(home):
    assert binaries.find("1.36.3") is None
    folder = programs(binaries.cache("1.36.3"), *binaries.NAMES)
    assert binaries.find("1.36.3") == folder


def test_complete_assets_are_used_as_they_are(assets):
    programs(assets, *binaries.NAMES)
    assert binaries.find("1.33.7") == assets


def test_incomplete_assets_are_completed_with_what_was_built(assets):
    assert binaries.find("1.33.7") is None
    built = programs(binaries.cache("1.33.7"), "etcd", "kube-controller-manager", "kube-scheduler")
    found = binaries.find("1.33.7")
    assert (found / "etcd").resolve() == assets / "etcd"
    assert (found / "kube-apiserver").resolve() == assets / "kube-apiserver"
    assert (found / "kube-scheduler").resolve() == built / "kube-scheduler"


def test_kubectl_of_the_assets_comes_first(assets):
    assert binaries.kubectl() == assets / "kubectl"


def test_what_is_neither_built_nor_buildable_says_so(home, monkeypatch):
    monkeypatch.setenv("PATH", str(home))
    with pytest.raises(golang.BuildError, match=r"helm 3.1.0 is not built and there is no Go here"):
        binaries.tool("helm", "helm.sh/helm/v3", "3.1.0", "helm.sh/helm/v3/cmd/helm")


def test_a_tool_is_built_only_once(home, monkeypatch):
    built = programs(golang.cache("tools", "helm", "3.1.0"), "helm")
    monkeypatch.setenv("PATH", str(home))
    found = binaries.tool("helm", "helm.sh/helm/v3", "3.1.0", "helm.sh/helm/v3/cmd/helm")
    assert found == built / "helm"
