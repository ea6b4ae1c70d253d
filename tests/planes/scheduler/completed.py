"""A scheduler configuration as the real kube-scheduler completes it, without running it."""

import asyncio
import json

import yaml

from simulator.processes import credentials


class RefusedError(AssertionError):
    """kube-scheduler does not accept the configuration."""


async def configuration(folder, workdir, config):
    """Let the binary of a release read, check, complete and write down a configuration.

    It also builds its plug-ins with their arguments, and it dials nobody.
    """
    login, given, written = (workdir / name for name in ("login", "given.yaml", "written.yaml"))
    login.write_text(json.dumps(credentials.kubeconfig("https://127.0.0.1:1", b"", "none")))
    connection = {**config.get("clientConnection", {}), "kubeconfig": str(login)}
    given.write_text(json.dumps({**config, "clientConnection": connection}))
    written.unlink(missing_ok=True)
    child = await asyncio.create_subprocess_exec(
        str(folder / "kube-scheduler"),
        *(f"--config={given}", f"--write-config-to={written}", "--secure-port=0"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await asyncio.wait_for(child.communicate(), 60)
    if child.returncode:
        raise RefusedError(said.decode(errors="replace"))
    return yaml.safe_load(written.read_text())


def weights(profile):
    """The weight of every plug-in that scores, as the scheduler uses it."""
    plugins = profile["plugins"]
    score = plugins.get("score", {})
    points = [*plugins["multiPoint"]["enabled"], *score.get("enabled", ())]
    off = {entry["name"] for entry in score.get("disabled", ())}
    found = {entry["name"]: entry["weight"] for entry in points if entry.get("weight")}
    return {name: weight for name, weight in found.items() if name not in off}
