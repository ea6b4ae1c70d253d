"""Every metric that the code registers, for the reference: found in the source, not by running it.

A metric of a shared package belongs to each process that imports the module which registers it.
"""

import ast
import functools
import importlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from agent.observe.network import traffic
from agent.report import koordlet_metrics
from extender.plugins.coscheduling import coscheduling
from manager.quota.status import team_metrics
from manager.reservations import reservation_metrics
from process.runtime import metrics

ROOT = Path(__file__).parents[2]
PROCESSES: Mapping[str, str] = {
    "agent": "agent.app",
    "descheduler": "descheduler.app",
    "device-daemon": "agent.device_daemon.app",
    "extender": "extender.app",
    "manager": "manager.app",
    "runtime-proxy": "runtimeproxy.app",
    "webhook": "webhook.app",
}
"""The module from which everything that a process uses is imported."""
PACKAGES = frozenset(
    {*PROCESSES, "api", "certs", "domain", "kube", "process", "runtimeproxy"}
    - {"device-daemon", "runtime-proxy"}
)
_IMPORT = re.compile(r"^\s*import ([\w.]+)", re.MULTILINE)
_FROM = re.compile(r"^\s*from ([\w.]+) import (\([^)]*\)|[^\n]*)", re.MULTILINE)
KINDS = frozenset({"counter", "gauge", "histogram", "table"})


def _plugin_gauge(registry: metrics.Registry) -> None:
    name, description, label, _ = coscheduling.Coscheduling.gauge
    registry.gauge(name, description, (label,))


COMPUTED: Mapping[str, Callable[[metrics.Registry], object]] = {
    "agent.observe.network.traffic": lambda registry: traffic.Shown(registry, 1.0),
    "extender.explain.plugin_gauges": _plugin_gauge,
    "manager.quota.status.team_metrics": team_metrics.amount_tables,
    "manager.reservations.reservation_metrics": reservation_metrics.sum_tables,
}
"""Modules that register metrics under calculated names, and what registers just those."""


class Metric(NamedTuple):
    """What the reference says about one metric."""

    name: str
    kind: str
    labels: tuple[str, ...]
    meaning: str
    processes: tuple[str, ...]


class UnreadableMetricError(ValueError):
    """A metric whose name or labels the source does not say: add its module to `COMPUTED`."""


def found() -> tuple[Metric, ...]:
    """Return every metric of every process by name, those of the interpreter last."""
    reached = {process: _closure(module) for process, module in PROCESSES.items()}
    known: dict[str, Metric] = {}
    for module in sorted(set().union(*reached.values())):
        processes = tuple(name for name, modules in reached.items() if module in modules)
        for one in _of_module(module):
            before = known.get(one.name, one)
            both = tuple(sorted({*before.processes, *processes}))
            known[one.name] = before._replace(processes=both)
    return (*(known[name] for name in sorted(known)), *_of_koordlet(), *_of_interpreter())


def _closure(start: str) -> frozenset[str]:
    known, waiting = {start}, [start]
    while waiting:
        more = set(_imports(waiting.pop())) - known
        known |= more
        waiting += more
    return frozenset(known)


@functools.cache
def _path(module: str) -> Path | None:
    base = ROOT.joinpath(*module.split("."))
    options = (base.with_suffix(".py"), base / "__init__.py")
    return next((path for path in options if path.exists()), None)


@functools.cache
def _source(module: str) -> str:
    path = _path(module)
    assert path is not None
    return path.read_text(encoding="utf-8")


@functools.cache
def _imports(module: str) -> tuple[str, ...]:
    said = _IMPORT.findall(_source(module))
    for package, what in _FROM.findall(_source(module)):
        said += [package, *(f"{package}.{name}" for name in re.findall(r"\w+", what))]
    ours = {name for name in said if name.partition(".")[0] in PACKAGES}
    return tuple(sorted(name for name in ours if _path(name)))


def _of_module(module: str) -> Iterator[Metric]:
    registry = metrics.Registry()
    if register := COMPUTED.get(module):
        register(registry)
        yield from _registered(registry)
    if '"koord_' not in _source(module):
        return
    for scope in ast.walk(ast.parse(_source(module))):
        if isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef):
            for call in ast.walk(scope):
                if isinstance(call, ast.Call) and len(call.args) > 1:
                    kind = _kind(call.func)
                    if kind and (one := _read(module, scope, call, kind)):
                        yield one


def _kind(function: ast.expr) -> str:
    """Return what a call registers: `registry.gauge(...)`, or `gauge(...)` by a short name."""
    word = getattr(function, "attr", "") or getattr(function, "id", "")
    return word if word in KINDS else ""


def _read(module: str, scope: ast.AST, call: ast.Call, kind: str) -> Metric | None:
    given = [*call.args[:2], *_labels_of(call)]
    try:
        name, meaning, *labels = (_value(module, scope, node) for node in given)
    except NameError:
        if module in COMPUTED:
            return None
        raise UnreadableMetricError(f"{module}: {ast.unparse(call)}") from None
    if kind == "table":
        kind = metrics.Table(name, meaning, ()).kind
    return Metric(name, kind, tuple(*labels), meaning, ())


def _labels_of(call: ast.Call) -> Sequence[ast.expr]:
    named = [word.value for word in call.keywords if word.arg == "labels"]
    return [*call.args[2:3], *named]


def _value(module: str, scope: ast.AST, node: ast.expr) -> Any:
    """Evaluate an expression where it stands: of the function's own names, those set once."""
    if isinstance(node, ast.Constant):
        return node.value
    known = dict(vars(importlib.import_module(module)))
    for statement in ast.walk(scope):
        if isinstance(statement, ast.Assign) and _names(statement) & _used(node):
            (target,) = statement.targets
            code = ast.Module([ast.Assign([target], statement.value, lineno=1)], [])
            exec(compile(ast.fix_missing_locations(code), module, "exec"), known)  # noqa: S102
    expression = ast.fix_missing_locations(ast.Expression(node))
    return eval(compile(expression, module, "eval"), known)  # noqa: S307 - our own source


def _names(statement: ast.Assign) -> set[str]:
    return {name for target in statement.targets for name in _used(target)}


def _used(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}


def _registered(registry: metrics.Registry) -> Iterator[Metric]:
    described = registry.described()
    for family in registry.collector.collect():
        name = f"{family.name}_total" if family.type == "counter" else family.name
        kind, labels = described[name]
        yield Metric(name, kind, labels, family.documentation, ())


def _of_koordlet() -> Iterator[Metric]:
    for name, (labels, meaning) in sorted(koordlet_metrics.FAMILIES.items()):
        yield Metric(f"koordlet_{name}", "gauge", ("node", *labels), meaning, ("agent",))


def _of_interpreter() -> Iterator[Metric]:
    everybody = tuple(PROCESSES)
    for family in sorted(metrics.Registry(interpreter=True).collector.collect(), key=str):
        name = f"{family.name}_total" if family.type == "counter" else family.name
        labels = sorted({label for sample in family.samples for label in sample.labels})
        yield Metric(name, family.type, tuple(labels), family.documentation, everybody)
