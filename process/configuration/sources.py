"""Where settings come from: a YAML file, environment variables and command-line flags."""

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

# A Service called like a process makes the kubelet inject these beside our own variables.
_SERVICE_LINK = re.compile(
    r"(^|_)(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT_\d+_(TCP|UDP|SCTP)(_(ADDR|PORT|PROTO))?)$"
)
_SERVICE_URL = re.compile(r"^(tcp|udp|sctp)://")


class SourceError(ValueError):
    """A file or command line that cannot be read as settings."""

    def __init__(self, *problems: str) -> None:
        self.problems = problems
        super().__init__("\n".join(problems))


@dataclasses.dataclass(frozen=True, slots=True)
class Assignment:
    """One value for one path of keys, and who said so."""

    path: tuple[str, ...]
    value: Any
    origin: str
    textual: bool = False
    """The value is text whose meaning depends on the type of the setting."""
    repeatable: bool = False
    """A later assignment from the same source replaces this one in silence."""


class _Loader(yaml.SafeLoader):
    """YAML that refuses a key written twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        _refuse_twins(node)
        return super().construct_mapping(node, deep=deep)


def _refuse_twins(node: yaml.MappingNode) -> None:
    seen: dict[str, int] = {}
    for key, _ in node.value:
        name, line = str(key.value), key.start_mark.line + 1
        if name in seen:
            raise SourceError(f"line {line}: key {name} was already given in line {seen[name]}")
        seen[name] = line


_ELSEWHERE: Final = {
    "KubeSchedulerConfiguration": "; write it into ConfigMap koord-scheduler-config, which the "
    "extender follows",
}
"""Where kinds of Kubernetes that people take for settings belong."""


def _refuse_objects(node: yaml.MappingNode) -> None:
    """Refuse an object of Kubernetes in a sentence, not by each of its fields."""
    written = {str(key.value): (key, value) for key, value in node.value}
    if {"apiVersion", "kind"} <= written.keys():
        key, kind = written["kind"]
        raise SourceError(
            f"line {key.start_mark.line + 1}: this is a {kind.value}, no settings of a process"
            f"{_ELSEWHERE.get(str(kind.value), '')}"
        )


def from_file(file: Path) -> list[Assignment]:
    """Read a YAML file into one assignment per value, each knowing its line."""
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise SourceError(f"{file}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise SourceError(f"{file}: cannot be read: {error}") from error
    return from_text(text, str(file))


def from_text(text: str, name: str) -> list[Assignment]:
    """Read YAML into one assignment per value, each knowing its line; `name` says where it is."""
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        if node is None or (isinstance(node, yaml.ScalarNode) and not node.value):
            return []
        if not isinstance(node, yaml.MappingNode):
            raise SourceError("line 1: settings are a mapping of keys to values")
        _refuse_objects(node)
        return list(_walk(loader, node, (), name))
    except yaml.YAMLError as error:
        raise SourceError(f"{name}: not YAML: {' '.join(str(error).split())}") from error
    except SourceError as error:
        raise SourceError(*(f"{name} {problem}" for problem in error.problems)) from error
    finally:
        loader.dispose()


def _walk(
    loader: _Loader, node: yaml.MappingNode, path: tuple[str, ...], name: str
) -> Iterator[Assignment]:
    _refuse_twins(node)
    for key, value in node.value:
        here = (*path, str(key.value))
        if isinstance(value, yaml.MappingNode) and value.value:
            yield from _walk(loader, value, here, name)
        else:
            origin = f"{name} line {key.start_mark.line + 1}"
            yield Assignment(here, loader.construct_object(value, deep=True), origin)


def from_environ(environ: Mapping[str, str], prefix: str) -> list[Assignment]:
    """Read the variables that start with PREFIX_; `__` separates the keys of a path."""
    found = []
    for name, text in sorted(environ.items()):
        rest = name.removeprefix(f"{prefix}_")
        if rest == name or _SERVICE_LINK.search(rest) or _SERVICE_URL.match(text):
            continue
        found.append(Assignment(tuple(rest.split("__")), text, f"environment {name}", textual=True))
    return found


def from_flags(flags: Sequence[str], needs_value: Callable[[str], bool]) -> list[Assignment]:
    """Read `--section.field=value` and `--section.field value`."""
    found: list[Assignment] = []
    problems: list[str] = []
    rest = list(flags)
    while rest:
        flag, given, text = rest.pop(0).partition("=")
        if not flag.startswith("--") or len(flag) == 2:
            problems.append(
                f"unexpected argument {flag}: settings are written --section.field=value"
            )
            continue
        if not given:
            if rest and not rest[0].startswith("--"):
                text = rest.pop(0)
            elif needs_value(flag[2:]):
                problems.append(f"flag {flag} needs a value: {flag}=...")
                continue
            else:
                text = "true"
        path = tuple(flag[2:].split("."))
        found.append(Assignment(path, text, f"flag {flag}", textual=True, repeatable=True))
    if problems:
        raise SourceError(*problems)
    return found


def parse_mapping(text: str) -> dict[str, Any]:
    """Read `a=1,b=true` or a YAML flow mapping."""
    if text.lstrip().startswith("{"):
        value = _yaml(text)
        if not isinstance(value, dict):
            raise SourceError("expected a mapping such as {a: 1, b: 2} or a=1,b=2")
        return {str(key): inner for key, inner in value.items()}
    pairs = [part.strip().partition("=") for part in text.split(",") if part.strip()]
    if any(not separator for _, separator, _ in pairs):
        raise SourceError("expected pairs such as a=1,b=2")
    return {key.strip(): _yaml(value) for key, _, value in pairs}


def parse_sequence(text: str) -> list[Any]:
    """Read `a,b,c` or a YAML flow sequence."""
    if text.lstrip().startswith("["):
        value = _yaml(text)
        if not isinstance(value, list):
            raise SourceError("expected a list such as [a, b] or a,b")
        return value
    return [part.strip() for part in text.split(",") if part.strip()]


def parse_scalar(text: str) -> Any:
    """Read one YAML value; for places whose type is open."""
    return _yaml(text)


def to_text(value: Any) -> str:
    """Write a value the way a file would hold it, on one line."""
    text: str = yaml.safe_dump(value, default_flow_style=True, width=10**9, sort_keys=False)
    return text.removesuffix("...\n").strip()


def to_yaml(value: Any) -> str:
    """Write a value as a file would hold it."""
    text: str = yaml.safe_dump(value, sort_keys=False)
    return text


def _yaml(text: str) -> Any:
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506 - a SafeLoader that refuses twins
    except yaml.YAMLError as error:
        raise SourceError(f"not YAML: {' '.join(str(error).split())}") from error
