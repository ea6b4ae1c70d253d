"""Runs the kubectl and koord commands of tutorials against the simulator."""

import argparse
import asyncio
import contextlib
import io
import json
import pathlib
import re
import shlex

import yaml

from api import resources
from cli import main

ROOT = pathlib.Path(__file__).parents[2]
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.M | re.S)
RESOURCES = [one for one in vars(resources).values() if isinstance(one, resources.Resource)]


def commands(page):
    """Every command of a page with the output that the page shows below it."""
    for block in BLOCK.findall(page.read_text()):
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
            command, _, shown = part.partition("\n")
            yield command, shown.splitlines()


def shows(shown, said):
    """Whether a page may show these lines for what was said; a line of three dots is any lines."""
    parts = [r"(?:.*\n)*?" if one == "..." else re.escape(one) + "\n" for one in shown]
    return re.fullmatch("".join(parts), "".join(f"{line.rstrip()}\n" for line in said)) is not None


def look_up(value, path):
    """What a jsonpath of fields and indices finds, as kubectl prints it."""
    for field, index in re.findall(r"\.([\w-]+)|\[(\d+)\]", path):
        value = value[int(index)] if index else (value or {}).get(field)
    if isinstance(value, (dict, list)):
        return json.dumps(value, separators=(",", ":"), sort_keys=True)
    return "" if value is None else str(value)


class Console:
    """A terminal of a tutorial's reader."""

    def __init__(self, world):
        self.world = world
        self.parser = argparse.ArgumentParser(exit_on_error=False)
        self.parser.add_argument("verb", choices=("apply", "get", "wait"))
        self.parser.add_argument("words", nargs="*")
        for flag in ("-f", "-n", "-l", "-o", "--for", "--timeout"):
            self.parser.add_argument(flag, default="")

    async def run(self, command):
        """Run one command; returns the lines that it prints."""
        while inner := re.search(r"\$\((.*)\)", command):
            (said,) = await self.run(inner[1])
            command = command.replace(inner[0], said)
        program, *words = shlex.split(command)
        if program == "koord":
            return await self._koord(words)
        assert program == "kubectl", f"the runner of tutorials does not know {program}"
        asked = self.parser.parse_intermixed_args(words)
        return await getattr(self, asked.verb)(asked)

    async def _koord(self, words):
        """Run our own command in a thread, as it makes an event loop of its own."""
        file = self.world.plane.write_kubeconfig(self.world.folder / "kubeconfig")
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            code = await asyncio.to_thread(main.main, [*words, f"--kubeconfig={file}"])
        assert code == 0, words
        # Nobody types the next command at once, and a switch reaches the processes meanwhile.
        await self.world.pass_time(5.0)
        return said.getvalue().splitlines()

    async def apply(self, asked):
        """Create everything of a file."""
        said = []
        for body in yaml.safe_load_all((ROOT / asked.f).read_text()):
            (resource,) = [
                r
                for r in RESOURCES
                if (r.api_version, r.kind) == (body["apiVersion"], body["kind"])
            ]
            space = body["metadata"].get("namespace", "default") if resource.namespaced else ""
            async with self.world.flowing():
                await self.world.api.post(resource.path(space), body, fieldValidation="Strict")
            said.append(f"{self._name(resource, body)} created")
        return said

    async def get(self, asked):
        """Print one field."""
        _, found = self._found(asked)
        path = asked.o.removeprefix("jsonpath=")
        return [look_up(found[0] if len(asked.words) > 1 else {"items": found}, path)]

    async def wait(self, asked):
        """Wait until a field of every object has a value."""
        path, _, value = vars(asked)["for"].removeprefix("jsonpath=").rpartition("=")
        seconds = 60.0 * int(asked.timeout.removesuffix("m"))

        def met():
            _, found = self._found(asked)
            return found and all(look_up(one, path) == value for one in found)

        await self.world.until(met, f"{asked.words} in {asked.n}: {path} is {value}", seconds)
        resource, found = self._found(asked)
        return [f"{self._name(resource, one)} condition met" for one in found]

    def _found(self, asked):
        kind = asked.words[0]
        resource = next(r for r in RESOURCES if kind in (r.kind.lower(), r.plural))
        space = asked.n or "default" if resource.namespaced else ""
        if len(asked.words) > 1:
            one = self.world.found(resource, asked.words[1], space)
            return resource, [one] if one else []
        key, _, value = asked.l.partition("=")
        return resource, [
            one
            for one in self.world.plane.objects.list(resource).items
            if one["metadata"].get("namespace", "") == space
            and (not key or one["metadata"].get("labels", {}).get(key) == value)
        ]

    @staticmethod
    def _name(resource, body):
        kind = f"{resource.kind.lower()}.{resource.group}".rstrip(".")
        return f"{kind}/{body['metadata']['name']}"
