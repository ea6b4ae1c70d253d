"""How a process finds its API server and proves who it is."""

import subprocess
import sys
from pathlib import Path

import pytest

from kube.client import access, connect, errors

# One process that imports what every agent imports, and prints what that costs.
IMPORTS = """
from kube.client import client
from kube.controllers import controller, leases, recorder
from kube.informers import informer_set, reflector
import sys, pathlib
heavy = {"numpy", "cryptography", "kubernetes_asyncio", "pydantic", "yaml"} & set(sys.modules)
resident = pathlib.Path("/proc/self/status").read_text().split("VmRSS:")[1].split()[0]
print(int(resident) // 1024, *sorted(heavy))
"""


@pytest.fixture
def service_account(tmp_path: Path) -> Path:
    (tmp_path / "token").write_text("secret\n")
    (tmp_path / "ca.crt").write_text("certificates")
    return tmp_path


@pytest.mark.parametrize(
    ("host", "server"),
    [("10.0.0.1", "https://10.0.0.1:443"), ("fd00::1", "https://[fd00::1]:443")],
    ids=["IPv4", "IPv6"],
)
async def test_in_cluster(service_account: Path, host: str, server: str) -> None:
    environ = {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": "443"}
    found = access.in_cluster(environ, service_account)
    assert (found.server, found.ca_data) == (server, b"certificates")
    assert found.tokens is not None
    assert await found.tokens.authorization() == "Bearer secret"
    assert "secret" not in repr(found)


def test_outside_a_pod_says_what_to_do(service_account: Path) -> None:
    with pytest.raises(errors.AccessError, match="name a kubeconfig"):
        access.in_cluster({}, service_account)


def test_pod_without_a_service_account_says_what_to_do(tmp_path: Path) -> None:
    environ = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    with pytest.raises(errors.AccessError, match="automountServiceAccountToken"):
        access.in_cluster(environ, tmp_path)


async def test_missing_token_file_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(errors.AccessError, match="mount a service account token"):
        await access.TokenFile(tmp_path / "none").authorization()


async def test_token_file_is_read_again_after_a_refusal(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("one")
    tokens = access.TokenFile(file)
    assert await tokens.authorization() == "Bearer one"
    await tokens.renew()
    assert await tokens.authorization() == "Bearer one"


async def test_static_token() -> None:
    token = access.StaticToken("abc")
    await token.renew()
    assert await token.authorization() == "Bearer abc"
    assert "abc" not in repr(token)


async def test_connect_prefers_the_pod_unless_a_file_is_named(
    service_account: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    with pytest.raises(errors.AccessError, match="automountServiceAccountToken"):
        await connect.connect()
    with pytest.raises(errors.AccessError, match="there is no kubeconfig"):
        await connect.connect(service_account / "none")


@pytest.mark.parametrize("data", [b"no certificate", b"\xff"], ids=["text", "bytes"])
def test_unusable_certificates_are_named(data: bytes) -> None:
    with pytest.raises(errors.AccessError, match="certificates for https://example"):
        access.Access("https://example.test", ca_data=data).ssl_context()


def test_plain_http_and_insecure() -> None:
    assert access.Access("http://example.test").ssl_context() is None
    context = access.Access("https://example.test", insecure=True).ssl_context()
    assert context is not None
    assert not context.check_hostname


def test_import_leaves_room_for_an_agent() -> None:
    """An agent has 55 MiB in all; what it needs of this package may take 42 of them."""
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS], capture_output=True, text=True, check=True
    )
    resident, *heavy = done.stdout.split()
    assert heavy == []
    assert int(resident) <= 42
