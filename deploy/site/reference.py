"""Reference pages of the manual, made from the code when the site is built: a hook of mkdocs.

They cannot lack a field, a label or a flag, because they list what the code itself reads.
"""

import argparse
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from mkdocs.structure import files

sys.path.insert(0, str(Path(__file__).parents[2]))

from agent import settings as agent_settings
from agent.device_daemon import settings as device_daemon_settings
from api import names
from api.koordinator import events
from api.kubernetes import crds
from cli import exit_codes
from cli import main as cli
from deploy.site import code_metrics
from descheduler import settings as descheduler_settings
from extender import settings as extender_settings
from manager import settings as manager_settings
from process.configuration import settings
from runtimeproxy import settings as runtime_proxy_settings
from webhook import settings as webhook_settings

ROOT = Path(__file__).parents[2]
PROCESSES: Mapping[str, type[settings.Settings]] = {
    "agent": agent_settings.Settings,
    "descheduler": descheduler_settings.Settings,
    "device-daemon": device_daemon_settings.Settings,
    "extender": extender_settings.Settings,
    "manager": manager_settings.Settings,
    "runtime-proxy": runtime_proxy_settings.Settings,
    "webhook": webhook_settings.Settings,
}


def on_files(found: files.Files, config: Any) -> files.Files:
    """Add the reference pages."""
    for name, text in pages().items():
        found.append(files.File.generated(config, f"reference/{name}.md", content=text))
    return found


def pages() -> Mapping[str, str]:
    """Return each page by its name."""
    return {
        "kinds": "# Kinds and their fields\n\n" + "\n".join(_kinds()),
        "labels": "# Labels and annotations\n\n" + "\n".join(_labels()),
        "settings": "# Settings of each process\n\n" + "\n".join(_settings()),
        "commands": "# Commands and flags\n\n" + "\n".join(_commands(cli.parser_of_all())),
        "chart": _chart(),
        "exit-codes": "# Exit codes\n\n" + "\n".join(_exit_codes()),
        "events": "# Events\n\n" + "\n".join(_events()),
        "alerts": "# Alerts\n\n" + "\n".join(_alerts()),
        "metrics": "# Metrics\n\n" + "\n".join(_metrics()),
    }


def _kinds() -> Iterator[str]:
    for name, document in sorted(crds.documents().items()):
        spec = document["spec"]
        for version in spec["versions"]:
            yield f"## {spec['names']['kind']}\n\n`{name}`, `{version['name']}`, {spec['scope']}\n"
            yield "| field | type | meaning |\n|---|---|---|"
            yield from _properties("", version["schema"]["openAPIV3Schema"])
            yield ""


def _properties(prefix: str, schema: Mapping[str, Any]) -> Iterator[str]:
    for name, below in sorted(schema.get("properties", {}).items()):
        path = f"{prefix}.{name}" if prefix else name
        yield f"| `{path}` | {below.get('type', 'any')} | {_cell(below.get('description', ''))} |"
        inner = below.get("items")
        yield from _properties(f"{path}[]", inner) if inner else _properties(path, below)


def _labels() -> Iterator[str]:
    yield "| key | what |\n|---|---|"
    for constant, value in sorted(vars(names).items(), key=lambda item: str(item[1])):
        kind = constant.partition("_")[0]
        if kind in {"LABEL", "ANNOTATION"} and isinstance(value, str):
            yield f"| `{value}` | {kind.lower()} |"


def _settings() -> Iterator[str]:
    for process, model in PROCESSES.items():
        yield f"## koord {process}\n\n| setting | default | meaning |\n|---|---|---|"
        for one in settings.describe(model):
            yield f"| `{one.path}` | `{_cell(str(one.default))}` | {_cell(one.description)} |"
        yield ""


def _commands(parser: argparse.ArgumentParser) -> Iterator[str]:
    yield f"## {parser.prog}\n\n```text\n{parser.format_help()}```\n"
    for action in parser._actions:  # noqa: SLF001 - argparse has no public name for them
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001 - no public name
            for below in dict.fromkeys(action.choices.values()):
                yield from _commands(below)


def _metrics() -> Iterator[str]:
    yield (
        "Every process serves its metrics at `/metrics`. [Monitoring](../monitoring.md) says what"
        " to look at. A histogram `x` is read as `x_bucket`, `x_sum` and `x_count`.\n"
    )
    yield "| metric | type | labels | meaning | process |\n|---|---|---|---|---|"
    everybody = set(code_metrics.PROCESSES)
    for one in code_metrics.found():
        labels = ", ".join(f"`{label}`" for label in one.labels)
        whose = "all" if set(one.processes) == everybody else ", ".join(one.processes)
        yield f"| `{one.name}` | {one.kind} | {labels} | {_cell(one.meaning)} | {whose} |"


def _events() -> Iterator[str]:
    yield (
        "`kubectl describe` shows the events of an object, `kubectl get events -A` all of them. An"
        " event that repeats is counted, not posted again.\n"
    )
    yield "| reason | process | posted on | meaning |\n|---|---|---|---|"
    for reason, one in events.EVENTS.items():
        yield f"| `{reason}` | {one.process} | {one.about} | {one.meaning} |"


def _alerts() -> Iterator[str]:
    yield (
        "`deploy/monitoring/rules.yaml` is a rule file of Prometheus, which the chart installs with"
        " `monitoring.prometheusRule.enabled`. With `monitoring.prometheusRule.runbookUrl`, the"
        " address of this manual, each alert links its section here.\n"
    )
    rules = ROOT / "deploy" / "monitoring" / "rules.yaml"
    for group in yaml.safe_load(rules.read_text(encoding="utf-8"))["groups"]:
        for rule in group["rules"]:
            told = rule["annotations"]
            yield f"## {rule['alert']}\n"
            after = f", after {rule['for']}" if "for" in rule else ""
            yield f"{told['description']} Severity {rule['labels']['severity']}{after}:\n"
            yield f"```text\n{rule['expr'].rstrip()}\n```\n"
            yield f"{told['runbook'].rstrip()}\n"


def _exit_codes() -> Iterator[str]:
    yield "| command | code | meaning |\n|---|---|---|"
    processes = ", ".join(f"`koord {name}`" for name in PROCESSES)
    rows = {f"`koord {name}`": codes for name, codes in exit_codes.COMMANDS.items()}
    for name, codes in {**rows, f"the processes: {processes}": exit_codes.PROCESS}.items():
        yield from (f"| {name} | {code} | {meaning} |" for code, meaning in codes.items())


def _chart() -> str:
    values = (ROOT / "deploy/helm/koord/values.yaml").read_text(encoding="utf-8")
    return f"# Values of the chart\n\n```yaml\n{values}```\n"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
