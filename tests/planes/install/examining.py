"""What an installation says of itself: `helm test` and `koord doctor`."""

import json

from api import names
from tests.planes.install import installation, installed
from tests.planes.processes import accounts

NAMESPACE = names.NAMESPACE
TEST = "test"


async def tested(it):
    """Run what `helm test` runs, under its account; returns what it said."""
    hooks = [d for d in it.documents if installation.is_hook(d, TEST) and d["kind"] != "Pod"]
    await installed.apply(it.api, it.kubectl, hooks)
    (pod,) = (d for d in it.documents if installation.is_hook(d, TEST) and d["kind"] == "Pod")
    token = await accounts.token(it.api, NAMESPACE, pod["spec"]["serviceAccountName"])
    folder = it.folder / "test"
    folder.mkdir()
    login = it.plane.write_kubeconfig(folder / "login.json", token=token)

    async def run(*flags):
        here = installed.Place(folder, installed.OURS, (f"--kubeconfig={login}", *flags))
        return await installed.ended(*it.manifests.command(pod, "test", here))

    # The processes run on this machine, and not at the addresses of their pods.
    beside = it.health.get("scheduler", "")
    if beside:
        status, said = await run("--wait=0s")
        assert status == 4, said
        assert said.count("ERROR") == said.count("extender.silent"), said
    status, said = await run(f"--extender={beside}")
    assert status == 0, said
    await it.kubectl("delete", "-f", "-", stdin=installed.listed(hooks))
    return said


async def examined(it, *options):
    """Return every finding of the doctor that is not fine, by its code."""
    login = it.plane.write_kubeconfig(it.folder / "doctor.json")
    words = ("doctor", "cluster", f"--kubeconfig={login}", "--fail-on=never", "-o", "json")
    status, said = await installed.ended(*installed.OURS, *words, *options)
    assert status == 0, said
    return {
        one["check"]: one["sentence"]
        for one in json.loads(said[said.index("{") :])["findings"]
        if one["severity"] not in ("ok", "info")
    }
