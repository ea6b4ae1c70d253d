"""Write the manifests that are made from the models."""

import argparse
import json
from typing import Any

import yaml

from api.kubernetes import crds
from cli import clusters
from cli.install import in_place, scheduler_file
from cli.install.dashboards import pages, panels
from cli.output import terminal
from domain import wording
from process.runtime import entry


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `koord render`."""
    what = parser.add_subparsers(title="what", metavar="WHAT", required=True)
    custom = what.add_parser("crds", help="custom resource definitions")
    clusters.add_target(custom, "folder to write to; standard output if absent")
    custom.set_defaults(run=_crds)
    scheduler = what.add_parser(
        "scheduler-config", help="configuration that makes kube-scheduler call the extender"
    )
    scheduler_file.add_arguments(scheduler)
    node = what.add_parser(
        "in-place", help="files for a control-plane node, with certificates and steps"
    )
    in_place.add_arguments(node)
    boards = what.add_parser("dashboards", help="Grafana dashboards")
    clusters.add_target(boards, "folder to write to", required=True)
    boards.set_defaults(run=_dashboards)


def text(document: dict[str, Any]) -> str:
    """Return a manifest as YAML, keys in the order they were built in."""
    rendered: str = yaml.safe_dump(document, sort_keys=False, width=100, allow_unicode=True)
    return rendered


def _crds(chosen: argparse.Namespace) -> int:
    documents = crds.documents()
    if chosen.output is None:
        terminal.page("---\n".join(text(document) for document in documents.values()))
        return entry.OK
    chosen.output.mkdir(parents=True, exist_ok=True)
    for name, document in documents.items():
        (chosen.output / name).write_text(text(document), encoding="utf-8")
    written = wording.count(len(documents), "definition", "definitions")
    terminal.say(f"wrote {written} to {chosen.output}")
    return entry.OK


def _dashboards(chosen: argparse.Namespace) -> int:
    chosen.output.mkdir(parents=True, exist_ok=True)
    for page in pages.PAGES:
        text = json.dumps(panels.document(page), indent=1) + "\n"
        (chosen.output / f"{page.name}.json").write_text(text, encoding="utf-8")
    terminal.say(f"wrote {len(pages.PAGES)} dashboards to {chosen.output}")
    return entry.OK
