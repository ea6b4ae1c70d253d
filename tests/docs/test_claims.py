"""What pages name exists: commands and flags, targets, metrics, keys, files, values, fields."""

import contextlib
import functools
import io
import pathlib
import re
import shlex

import pytest
import yaml

from agent import settings as agent_settings
from agent.device_daemon import settings as device_daemon_settings
from api import names
from api.kubernetes import crds
from cli import main
from deploy.site import code_metrics
from descheduler import settings as descheduler_settings
from extender import settings as extender_settings
from manager import settings as manager_settings
from process.configuration import settings
from runtimeproxy import settings as runtime_proxy_settings
from webhook import settings as webhook_settings

ROOT = pathlib.Path(__file__).parents[2]
NAMED = ("README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "CRITIQUES.md", "examples/README.md")
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), *(ROOT / name for name in NAMED)]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.M | re.S)
INLINE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
TARGETS = re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.M)
PLACES = (
    "agent", "api", "benchmarks", "certs", "cli", "deploy", "descheduler", "docs", "domain",
    "examples", "extender", "kube", "manager", "process", "runtimeproxy", "simulator", "tests",
    "webhook",
)  # fmt: skip
PATH = re.compile(rf"(?:{'|'.join(PLACES)})/[\w./*-]+")
DEFAULT = re.compile(r"`([a-zA-Z.]+)`\s\((\d[\d.]*)(?: (s|MiB|%))?\)")
"""A setting, and behind it in parentheses what it is unless somebody says otherwise."""
UNITS = {"": 1, "s": 1, "%": 1, "MiB": 1 << 20}
PROCESSES = (
    agent_settings.Settings, descheduler_settings.Settings, device_daemon_settings.Settings,
    extender_settings.Settings, manager_settings.Settings, runtime_proxy_settings.Settings,
    webhook_settings.Settings,
)  # fmt: skip
OURS = re.compile(r"(?:[a-z-]+\.)*(?:koordinator\.sh|koord\.sh)/[\w.-]+")
GROUPS = re.compile(r"^apiVersion: .*(?:koordinator\.sh|sigs\.k8s\.io|topology\.node)", re.M)
VERSIONS = {"descheduler/v1alpha2"}
"""What is written like a path and is the version of an API."""
INCOMPLETE = ("required", "expected one argument", "invalid choice: 'COMMAND'", "'PROCESS'")
"""What the command line says of a command in a sentence, which names no arguments."""

over_pages = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


@functools.cache
def parser():
    return main.parser_of_all()


@functools.cache
def metrics():
    return {one.name for one in code_metrics.found()}


@functools.cache
def schemas():
    return {
        (f"{one['spec']['group']}/{version['name']}", one["spec"]["names"]["kind"]): version
        for one in crds.documents().values()
        for version in one["spec"]["versions"]
    }


@functools.cache
def sources():
    """All text of the product, in which keys and metrics may be put together."""
    kinds = (".py", ".yaml", ".tpl", ".json")
    folders = [ROOT / name for name in PLACES if name not in ("benchmarks", "docs", "tests")]
    found = (path for folder in folders for path in folder.rglob("*") if path.suffix in kinds)
    return "\n".join(path.read_text() for path in found if path.is_file())


def typed(page):
    """The commands in the terminals of a page."""
    for kind, body in FENCE.findall(page.read_text()):
        if kind == "console":
            lines = body.replace("\\\n", " ").splitlines()
            yield from (line.removeprefix("$ ") for line in lines if line.startswith("$ "))


def inline(page):
    """What stands in the sentences and tables of a page as code."""
    return INLINE.findall(FENCE.sub("", page.read_text()))


def complaint(command):
    """What the command line says against a command, nothing against one of others."""
    plain = re.split(r"\s#|\s\||;|&&|\s>", re.sub(r"\$\(.*?\)", "x", command))[0]
    found = re.match(r"(?:\S+/)?(?:koord|kubectl koord)\s+(.*)", plain)
    if found is None:
        return ""
    words = shlex.split(found[1])
    if words[-1:] == ["--help"] and words[0] in main.PROCESSES:
        return ""
    if (action := tuple(words[:2])) in main.ACTIONS:
        _, told = called(main.main, [*action, "--help"])
        return "".join(f"no flag {one}" for one in words[2:] if one[0] == "-" and one not in told)
    failed, told = called(parser().parse_args, words)
    return told if failed else ""


def called(function, words):
    """Whether a command line ends a program with an error, and what it prints."""
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
        try:
            function(words)
        except SystemExit as ended:
            return bool(ended.code), said.getvalue()
    return False, said.getvalue()


@over_pages
def test_every_command_of_a_terminal_is_understood(page):
    assert [(one, said) for one in typed(page) if (said := complaint(one))] == []


@over_pages
def test_every_command_of_a_sentence_is_there_and_has_the_flags(page):
    named = [one for one in inline(page) if one.startswith("koord ")]
    wrong = {one: said for one in named if (said := complaint(one))}
    assert {
        one: said
        for one, said in wrong.items()
        if not any(why in said for why in INCOMPLETE)
    } == {}  # fmt: skip


@pytest.mark.parametrize(
    ("command", "why"),
    [
        pytest.param("koord status -A # all", "", id="understood"),
        pytest.param(".venv/bin/koord agent scorecard --days 7", "", id="an action of a process"),
        pytest.param("koord agent scorecard --weeks 7", "no flag --weeks", id="no flag of it"),
        pytest.param("koord stauts", "invalid choice", id="no such command"),
        pytest.param("koord status --colour", "unrecognized arguments", id="no such flag"),
        pytest.param("koord diff", "required", id="an argument is missing"),
        pytest.param("kubectl get pods", "", id="of others"),
    ],
)
def test_what_is_wrong_with_a_command_is_found(command, why):
    said = complaint(command)
    assert why in said
    assert bool(said) is bool(why)


@over_pages
def test_every_target_of_make_exists(page):
    named = [*typed(page), *inline(page)]
    targets = [one for text in named for one in re.findall(r"^make ([a-z][a-z0-9-]*)", text)]
    assert [one for one in targets if one not in TARGETS] == []


@over_pages
def test_every_metric_exists(page):
    named = {one for text in inline(page) for one in re.findall(r"\bkoord_[a-z0-9_]+", text)}
    plain = {re.sub(r"_(bucket|count|sum)$", "", one) for one in named} - metrics()
    assert [one for one in plain if one not in sources()] == []


@over_pages
def test_every_label_and_annotation_of_ours_exists(page):
    known = {value for value in vars(names).values() if isinstance(value, str)}
    keys = {one for one in inline(page) if OURS.fullmatch(one)} - known
    assert [one for one in keys if one not in sources()] == []


@over_pages
def test_every_file_of_the_repository_exists(page):
    paths = {one.rstrip("/") for one in inline(page) if PATH.fullmatch(one)} - VERSIONS
    missing = [one for one in paths if not [*ROOT.glob(one), *ROOT.glob(f"{one}.py")]]
    assert missing == []


@over_pages
def test_every_field_in_a_manifest_of_ours_exists(page):
    fences = FENCE.findall(page.read_text())
    bodies = [body for kind, body in fences if kind == "yaml" and GROUPS.search(body)]
    objects = [one for body in bodies for one in yaml.safe_load_all(body) if isinstance(one, dict)]
    for one in objects:
        version = schemas().get((one.get("apiVersion"), one.get("kind")))
        if version is not None:
            rest = {key: one[key] for key in one if key not in ("apiVersion", "kind", "metadata")}
            assert list(unknown(rest, version["schema"]["openAPIV3Schema"], "")) == []


def test_defaults_that_pages_say_in_parentheses_are_those_of_the_settings():
    defaults = {}
    for model in PROCESSES:
        for one in settings.describe(model):
            defaults.setdefault(one.path, set()).add(as_number(one.default))
    said = [
        (page.name, path.removeprefix("agent.settings."), float(number) * UNITS[unit])
        for page in PAGES
        for path, number, unit in DEFAULT.findall(page.read_text())
    ]
    known = [one for one in said if one[1] in defaults]
    assert len(known) > 8
    assert [one for one in known if one[2] not in defaults[one[1]]] == []


@over_pages
def test_settings_are_written_as_the_reference_writes_them(page):
    known = {one.path for model in PROCESSES for one in settings.describe(model)}
    written = re.findall(r"`([a-zA-Z]+(?:\.\w+)*\.[a-z]+(?:_[a-z]+)+)`", page.read_text())
    assert [name for name in written if camel_case(name) in known] == []


def camel_case(name):
    return re.sub(r"_([a-z])", lambda found: found[1].upper(), name)


def as_number(default):
    """A default as a number, where it is one."""
    with contextlib.suppress(ValueError):
        return float(str(default))
    return None


def unknown(value, schema, path):
    """The fields of a value that its schema does not have."""
    if isinstance(value, list):
        for one in value:
            yield from unknown(one, schema.get("items", {}), path)
    elif isinstance(value, dict) and not schema.get("x-kubernetes-preserve-unknown-fields"):
        fields, others = schema.get("properties", {}), schema.get("additionalProperties")
        for key, one in value.items():
            if key in fields or isinstance(others, dict):
                yield from unknown(one, fields.get(key, others), f"{path}.{key}")
            else:
                yield f"{path}.{key}"
