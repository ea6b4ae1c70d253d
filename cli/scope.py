"""Which objects a command lists: the flags -n, -A and -l as kubectl has them."""

import argparse
from collections.abc import Mapping
from typing import Final, NamedTuple

from api import resources
from api.kubernetes import label_selector_text, selectors
from cli import reading
from cli.doctor.checkup import facts
from kube.client import client as clients
from kube.client import errors

DEFAULT: Final = "default"


class Scope(NamedTuple):
    """The namespace and the labels of what is listed."""

    namespace: str = ""
    """Empty for all namespaces."""
    requirements: tuple[label_selector_text.Requirement, ...] = ()
    text: str = ""
    """The selector as it was written."""

    def holds(self, namespace: str) -> bool:
        """Whether a namespace is meant."""
        return self.namespace in ("", namespace)

    def takes(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Whether an object of this namespace with these labels is meant."""
        return self.holds(namespace) and label_selector_text.matches(self.requirements, labels)

    @property
    def place(self) -> str:
        """Say where nothing was found, and by which flags more is."""
        where = f" in namespace {self.namespace}; -A shows all" if self.namespace else ""
        return f" with labels {self.text}{where}" if self.text else where


def add_arguments(parser: argparse.ArgumentParser, labels_of: str, *, every: bool = False) -> None:
    """Declare the flags; `every` lists all namespaces where none is named."""
    unnamed = "" if every else DEFAULT
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "-A",
        "--all-namespaces",
        dest="namespace",
        action="store_const",
        const="",
        default=unnamed,
        help="of all namespaces (default)" if every else "of all namespaces",
    )
    where.add_argument(
        "-n",
        "--namespace",
        default=unnamed,
        metavar="NAMESPACE",
        help="namespace of what is listed" + ("" if every else " (default: %(default)s)"),
    )
    parser.add_argument(
        "-l",
        "--selector",
        type=_selector,
        default=Scope(),
        metavar="LABELS",
        help=f"only with these labels, such as 'team=a,tier in (x,y),!old': of {labels_of}",
    )


def of(chosen: argparse.Namespace) -> Scope:
    """Return what the flags ask for."""
    named: Scope = chosen.selector
    return named._replace(namespace=str(chosen.namespace))


def _selector(text: str) -> Scope:
    try:
        return Scope(requirements=label_selector_text.parse(text), text=text)
    except selectors.SelectorError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


async def named(
    kube: clients.Client, scope: Scope, *wanted: resources.Resource
) -> frozenset[tuple[str, str]] | None:
    """Return namespace and name of all objects with the labels; None where all are meant."""
    if not scope.requirements:
        return None
    found: set[tuple[str, str]] = set()
    for resource in wanted:
        place = scope.namespace if resource.namespaced else ""
        try:
            items = (await kube.list(resource, place, labels=scope.text)).items
        except (errors.NotFound, errors.Forbidden):
            # The caller reads the objects as well, and says why none is shown.
            continue
        for raw in items:
            metadata = reading.either({}, facts.section, raw, "metadata")
            found.add((str(metadata.get("namespace") or ""), str(metadata.get("name") or "")))
    return frozenset(found)
