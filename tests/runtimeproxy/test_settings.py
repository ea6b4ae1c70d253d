"""Flags of the proxy, by the names that installations use, and registration files."""

import json

import pytest

from api.koordinator import runtime_hooks
from cli import main
from process.configuration import settings as process_settings
from runtimeproxy import settings
from runtimeproxy.hooks import registrations

STAGE = runtime_hooks.Stage


def loaded(*flags):
    return process_settings.load(
        settings.Settings, file=None, environ={}, prefix="KOORD_RUNTIME_PROXY", flags=flags
    )


def test_the_flags_of_the_reference_are_flags_here():
    found = loaded(
        "--koord-runtimeproxy-endpoint=/run/proxy.sock",
        "--remote-runtime-service-endpoint=unix:///run/crio/crio.sock",
        "--backend-runtime-mode=Containerd",
        "--runtime-hook-server-key=skip",
        "--runtime-hook-server-val=yes",
    )
    assert (found.listen, found.runtime) == ("/run/proxy.sock", "/run/crio/crio.sock")
    assert (found.runtime_hook_server_key, found.runtime_hook_server_val) == ("skip", "yes")


@pytest.mark.parametrize(
    ("flags", "runtime"),
    [
        ((), "/var/run/containerd/containerd.sock"),
        (("--backend-runtime-mode=Docker",), "/var/run/cri-dockerd.sock"),
        (("--backend-runtime-mode=Docker", "--remote-runtime-service-endpoint=/x"), "/x"),
    ],
    ids=["containerd", "docker", "named"],
)
def test_each_mode_has_its_runtime(flags, runtime):
    assert loaded(*flags).runtime == runtime


@pytest.mark.parametrize(
    ("flag", "reason"),
    [
        ("--backend-runtime-mode=Podman", "'Containerd' or 'Docker'"),
        ("--koord-runtimeproxy-endpoint=tcp://1.2.3.4", "path of a unix socket"),
        (
            f"--koord-runtimeproxy-endpoint={settings.CONTAINERD}",
            "the socket of the runtime itself",
        ),
    ],
    ids=["mode", "endpoint", "same"],
)
def test_other_values_are_errors_that_say_what_is_wrong(flag, reason, capsys):
    assert main.main(["runtime-proxy", flag]) == 2
    assert reason in capsys.readouterr().err


def registration(**changed):
    content = {
        "remote-endpoint": "/var/run/koordlet/koordlet.sock",
        "failure-policy": "Ignore",
        "runtime-hooks": ["PreRunPodSandbox", "PreRemoveRunPodSandbox"],
    }
    return json.dumps({**content, **changed})


@pytest.mark.parametrize(
    ("policy", "meant"), [("Fail", "Fail"), ("Ignore", "Ignore"), ("", "Ignore"), (None, "Ignore")]
)
def test_a_registration_is_read_with_the_stages_that_exist(policy, meant):
    found = registrations.read(registration(**{"failure-policy": policy}))
    assert found == registrations.Registration(
        "/var/run/koordlet/koordlet.sock",
        registrations.Policy(meant),
        frozenset({STAGE.PRE_RUN_POD_SANDBOX}),
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "no JSON"),
        ("[" * 60_000, "no JSON"),
        ("[]", "no JSON object"),
        (registration(**{"remote-endpoint": "koordlet"}), "remote-endpoint"),
        (registration(**{"runtime-hooks": "PreRunPodSandbox"}), "runtime-hooks"),
        (registration(**{"failure-policy": "Retry"}), "failure-policy: 'Retry'"),
    ],
    ids=["cut", "deep", "list", "endpoint", "stages", "policy"],
)
def test_a_broken_registration_names_the_key(text, reason):
    with pytest.raises(registrations.RegistrationError, match=reason):
        registrations.read(text)
