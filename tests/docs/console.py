"""Runs the koord commands of tutorials, and stands in for kubectl, in virtual time."""

import argparse
import asyncio
import contextlib
import io
import json
import re
import shlex

import yaml

from api import resources
from cli import endpoints, main
from tests.docs import commands

RESOURCES = [one for one in vars(resources).values() if isinstance(one, resources.Resource)]


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
        folder, server = self.world.folder, self.world.plane.server
        file = self.world.plane.write_kubeconfig(folder / "kubeconfig")
        running = {name: one.app for name, one in self.world.processes.items()}
        agents = {
            name.removeprefix("agent-"): app
            for name, app in running.items()
            if name.startswith("agent-")
        }
        endpoints.save(folder, server, running.items(), agents)
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
        for body in yaml.safe_load_all((commands.ROOT / asked.f).read_text()):
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
        kind, _, group = asked.words[0].partition(".")
        # Of several groups kubectl takes one that nobody may have meant: pages name the group.
        (resource,) = [
            one
            for one in RESOURCES
            if kind in (one.kind.lower(), one.plural) and group in ("", one.group)
        ]
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
