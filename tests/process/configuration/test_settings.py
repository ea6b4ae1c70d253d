"""Settings from three sources: who wins, what is refused, and how a person is told."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pydantic
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from process.configuration import settings
from process.configuration.settings import Settings


class Rule(Settings):
    """One rule of a list."""

    name: str
    """What it is called."""
    weight: int = 1
    """How much it counts."""


class Plugins(Settings):
    """Plug-ins."""

    names: tuple[str, ...] = ("load-aware",)
    """Which ones run."""
    weights: dict[str, int] = pydantic.Field(default_factory=dict)
    """How much each counts."""
    rules: tuple[Rule, ...] = ()
    """Rules in their order."""


class Root(Settings):
    """A process."""

    server: settings.ServerSettings = settings.ServerSettings()
    """Where it listens."""
    log: settings.LogSettings = settings.LogSettings()
    """What it logs."""
    plugins: Plugins = Plugins()
    """Plug-ins."""
    feature_gates: dict[str, bool] = pydantic.Field(default_factory=dict)
    """Gates."""
    extra: dict[str, Any] = pydantic.Field(default_factory=dict)
    """Free-form."""
    observe: bool = False
    """Only say what would be done."""
    ratio: float | None = None
    """A ratio; null for none."""
    password: pydantic.SecretStr = pydantic.SecretStr("")
    """A secret."""


@pytest.fixture
def read(tmp_path: Path) -> Any:
    def call(
        text: str | None = None, environ: Mapping[str, str] | None = None, flags: Sequence[str] = ()
    ) -> Root:
        file = None
        if text is not None:
            file = tmp_path / "koord.yaml"
            file.write_text(text, encoding="utf-8")
        return settings.load(
            Root, file=file, environ=environ or {}, prefix="KOORD_TEST", flags=flags
        )

    return call


def problems(read: Any, *arguments: Any) -> tuple[str, ...]:
    with pytest.raises(settings.SettingsError) as caught:
        read(*arguments)
    return caught.value.problems


def test_flags_win_over_environment_over_file_over_default(read: Any) -> None:
    text = "server: {port: 1, host: file, maxConnections: 7}\nlog: {level: warning}\n"
    environ = {"KOORD_TEST_SERVER__PORT": "2", "KOORD_TEST_SERVER__HOST": "environ"}
    loaded = read(text, environ, ["--server.port=3"])
    assert (loaded.server.port, loaded.server.host) == (3, "environ")
    assert loaded.server.max_connections == 7
    assert loaded.log.level == "warning"
    assert loaded.server.keep_alive_seconds == 3600
    assert read() == Root()


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        pytest.param(["--observe"], {"observe": True}, id="switch alone"),
        pytest.param(
            ["--observe", "--ratio", "1"], {"observe": True, "ratio": 1.0}, id="then flag"
        ),
        pytest.param(["--observe=false"], {"observe": False}, id="switch off"),
        pytest.param(["--observe", "true"], {"observe": True}, id="switch with a word"),
        pytest.param(["--ratio=null"], {"ratio": None}, id="null"),
        pytest.param(["--ratio", "-1.5"], {"ratio": -1.5}, id="negative number"),
        pytest.param(["--ratio=1", "--ratio=2"], {"ratio": 2.0}, id="last one wins"),
        pytest.param(
            ["--feature-gates=A=true,B=false", "--featureGates", "C=true"],
            {"feature_gates": {"A": True, "B": False, "C": True}},
            id="gates",
        ),
        pytest.param(["--feature_gates={A: true}"], {"feature_gates": {"A": True}}, id="flow"),
        pytest.param(["--extra.some.key=1"], {"extra": {"some": {"key": 1}}}, id="free-form"),
        pytest.param(["--extra=a=x=y"], {"extra": {"a": "x=y"}}, id="equals sign in a value"),
    ],
)
def test_flags(read: Any, flags: list[str], expected: dict[str, Any]) -> None:
    assert read(None, None, flags).model_dump(include=set(expected)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("a,b", ("a", "b"), id="commas"),
        pytest.param(" a , b ,", ("a", "b"), id="spaces"),
        pytest.param("[a, b]", ("a", "b"), id="flow"),
        pytest.param("", (), id="empty"),
    ],
)
def test_lists_from_one_variable(read: Any, text: str, expected: tuple[str, ...]) -> None:
    loaded = read(None, {"KOORD_TEST_PLUGINS__NAMES": text})
    assert loaded.plugins.names == expected


def test_every_spelling_of_a_key_is_the_same_key(read: Any) -> None:
    for key in ("maxConnections", "max_connections", "max-connections"):
        assert read(f"server: {{{key}: 5}}").server.max_connections == 5
        assert read(None, None, [f"--server.{key}=5"]).server.max_connections == 5
    assert read(None, {"KOORD_TEST_SERVER__MAX_CONNECTIONS": "5"}).server.max_connections == 5


def test_group_given_as_one_value_merges_with_the_rest(read: Any) -> None:
    flags = ["--server.tls={certFile: /a, key_file: /b}", "--server.tls.clientCaFile=/c"]
    tls = read("server: {tls: null}", None, flags).server.tls
    assert (tls.cert_file, tls.key_file, tls.client_ca_file) == (Path("/a"), Path("/b"), Path("/c"))


def test_variables_the_kubelet_makes_for_services_are_not_settings(read: Any) -> None:
    environ = {
        "KOORD_TEST_SERVICE_HOST": "10.0.0.1",
        "KOORD_TEST_SERVICE_PORT": "443",
        "KOORD_TEST_SERVICE_PORT_HTTPS": "443",
        "KOORD_TEST_PORT": "tcp://10.0.0.1:443",
        "KOORD_TEST_PORT_443_TCP": "tcp://10.0.0.1:443",
        "KOORD_TEST_PORT_443_TCP_ADDR": "10.0.0.1",
        "KOORD_TEST_METRICS_SERVICE_HOST": "10.0.0.2",
        "KOORD_TESTING": "another process",
        "OTHER": "x",
    }
    assert read(None, environ) == Root()


def test_unknown_keys_name_their_place_and_the_nearest_key_all_at_once(
    read: Any, tmp_path: Path
) -> None:
    variable = "KOORD_TEST_SERVER__HOTS"
    found = problems(
        read,
        "server:\n  port: 1\n  prot: 2\nlogs: {level: info}\n",
        {variable: "x"},
        ["--feature-gate=A=true", "--zzz", "--log.format"],
    )
    file = tmp_path / "koord.yaml"
    assert found == (
        f"{file} line 3: unknown setting server.prot; did you mean server.port?",
        f"{file} line 4: unknown setting logs.level; did you mean log.level?",
        f"environment {variable}: unknown setting SERVER.HOTS; did you mean server.host?",
        "flag --log.format needs a value: --log.format=...",
    )
    assert problems(read, None, None, ["--feature-gate=A=true", "--zzz"]) == (
        "flag --feature-gate: unknown setting feature-gate; did you mean featureGates?",
        "flag --zzz: unknown setting zzz",
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("server:\n  port: x\n", "line 2: server.port: Input should be", id="type"),
        pytest.param(
            "server: {port: 70000}", "line 1: server.port: Input should be less", id="range"
        ),
        pytest.param("server: {keepAliveSeconds: 60}", "greater than 90", id="too short a life"),
        pytest.param(
            "server: {port: 1}\nserver: {port: 2}", "line 2: key server was already", id="twin"
        ),
        pytest.param(
            "plugins: {rules: [{name: a, name: b}]}", "key name was already", id="twin in a list"
        ),
        pytest.param(
            "server: {max_connections: 1, maxConnections: 2}", "was already set by", id="spellings"
        ),
        pytest.param("server: {port: 1, port: 2}", "key port was already", id="twin in a line"),
        pytest.param("[1, 2]", "a mapping of keys", id="list"),
        pytest.param("server: {port: 1", "not YAML", id="syntax"),
        pytest.param(
            "apiVersion: kubescheduler/v1\nkind: KubeSchedulerConfiguration\nprofiles: []",
            "line 2: this is a KubeSchedulerConfiguration, no settings of a process; write it into "
            "ConfigMap koord-scheduler-config, which the extender follows",
            id="a scheduler's configuration",
        ),
        pytest.param(
            "{apiVersion: v1, kind: Pod, metadata: {}}",
            "line 1: this is a Pod, no settings of a process",
            id="another object",
        ),
        pytest.param("server: 5", "line 1: server: Input should be", id="scalar for a group"),
        pytest.param(
            "plugins: {rules: [{name: a, wieght: 2}]}", "plugins.rules.0.wieght", id="in a list"
        ),
    ],
)
def test_bad_files_say_where(read: Any, text: str, expected: str) -> None:
    assert expected in "\n".join(problems(read, text))


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(settings.SettingsError, match=r"gone\.yaml: cannot be read"):
        settings.load(Root, file=tmp_path / "gone.yaml", environ={}, prefix="KOORD_TEST", flags=[])


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n", "{}"])
def test_empty_file_is_all_defaults(read: Any, text: str) -> None:
    assert read(text) == Root()


def test_required_setting_tells_all_three_ways(read: Any) -> None:
    (problem,) = problems(read, "server: {tls: {certFile: /a}}")
    assert problem == (
        "server.tls.keyFile is required: set it in the file, with --server.tls.keyFile=..."
        " or with KOORD_TEST_SERVER__TLS__KEY_FILE"
    )


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        pytest.param(["serve"], "unexpected argument serve", id="bare word"),
        pytest.param(["--"], "unexpected argument --", id="dashes only"),
        pytest.param(["--extra={a: [}"], "flag --extra: not YAML", id="bad flow"),
        pytest.param(["--feature-gates=A"], "pairs such as a=1,b=2", id="pair without a value"),
        pytest.param(["--feature-gates=A=x"], "flag --feature-gates: featureGates.A", id="no bool"),
        pytest.param(["--plugins.names=[a"], "flag --plugins.names: not YAML", id="bad list"),
        pytest.param(["--server.port.x=1"], "unknown setting server.port.x", id="too deep"),
    ],
)
def test_bad_flags_say_which(read: Any, flags: list[str], expected: str) -> None:
    assert expected in "\n".join(problems(read, None, None, flags))


def test_secrets_are_never_repeated(read: Any) -> None:
    found = problems(read, "password: [hunter2]\nserver: {port: hunter2}")
    assert len(found) == 2
    assert "hunter2" not in "".join(found)
    assert "hunter2" not in repr(read("password: hunter2"))


def test_settings_are_frozen(read: Any) -> None:
    with pytest.raises(pydantic.ValidationError, match="frozen"):
        read().observe = True


def test_reference_lists_every_setting_with_default_and_description() -> None:
    entries = {entry.path: entry for entry in settings.describe(Root)}
    assert entries["server.port"].type == "int"
    assert entries["server.port"].default == "0"
    assert entries["server.port"].description.startswith("TCP port to listen on")
    assert entries["log.format"].type == "text or json"
    assert entries["plugins.names"].default == "[load-aware]"
    assert entries["server.tls.certFile"].default == ""
    assert entries["ratio"].default == "null"
    assert entries["plugins.rules"].type == "tuple of Rule"
    assert "server" not in entries
    assert all(entry.description for entry in entries.values())
    assert settings.environment_name("KOORD_TEST", entries["server.keepAliveSeconds"].names) == (
        "KOORD_TEST_SERVER__KEEP_ALIVE_SECONDS"
    )


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "port": st.integers(0, 65535),
            "maxConnections": st.integers(1, 10**6),
            "drainSeconds": st.floats(0, 1e6, allow_nan=False),
            "host": st.from_regex(r"[a-z0-9.]{1,20}", fullmatch=True),
        },
    )
)
def test_all_sources_read_the_same_values(values: dict[str, Any]) -> None:
    names = {entry.path: entry.names for entry in settings.describe(Root)}
    environ = {
        settings.environment_name("P", names[f"server.{key}"]): str(value)
        for key, value in values.items()
    }
    flags = [f"--server.{key}={value}" for key, value in values.items()]
    expected = Root.model_validate({"server": values})
    for given_environ, given_flags in ((environ, []), ({}, flags)):
        loaded = settings.load(
            Root, file=None, environ=given_environ, prefix="P", flags=given_flags
        )
        assert loaded == expected
    again = Root.model_validate(yaml.safe_load(yaml.safe_dump({"server": values})))
    assert again == expected
