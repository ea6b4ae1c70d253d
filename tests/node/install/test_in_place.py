"""A real kubelet runs the extender from the rendered static pod, without root and without help."""

import contextlib
import io
import json
import os
import shutil

import pytest_asyncio

from api import resources
from cli import main
from cli.install import in_place_files
from deploy.image import build
from tests.planes.node import node, node_cluster

POD = resources.PODS.path("kube-system", f"{in_place_files.ACCOUNT}-{node_cluster.NODE}")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def mirror(cluster, node_plane, image):
    """What the API server shows of the static pod, once it is ready."""
    folder = cluster.node.workdir / "in-place"
    server = f"https://{node.SERVICE}:443"
    arguments = ("--image", build.reference(image), "--server", server)
    # The steps that it tells people are carried out below.
    with contextlib.redirect_stdout(io.StringIO()):
        assert main.main(["render", "in-place", "--to", str(folder), *arguments]) == 0
    placed = folder / "node" / in_place_files.FOLDER.lstrip("/")
    mine = placed / "extender"
    (mine / in_place_files.CLUSTER_CA).write_bytes(node_plane.ca)
    login = placed / "login"
    login.mkdir()
    (login / in_place_files.TOKEN).write_text(node_plane.token)
    # As the steps say, but below the folder of the test.
    for path in (mine, login, *mine.iterdir(), *login.iterdir()):
        os.chown(path, in_place_files.USER, in_place_files.USER)
    mine.chmod(0o700)
    login.chmod(0o700)
    name = f"{in_place_files.ACCOUNT}.yaml"
    manifest = (folder / "node" / in_place_files.MANIFESTS.lstrip("/") / name).read_text()
    written = cluster.node.workdir / name
    written.write_text(manifest.replace(in_place_files.FOLDER, str(placed)))
    shutil.move(written, cluster.node.workdir / "static" / name)
    try:
        yield await cluster.api.wait_until(POD, is_ready, node_cluster.PATIENCE)
    except AssertionError as late:
        raise AssertionError(f"{late}{await said(cluster)}") from late
    finally:
        (cluster.node.workdir / "static" / name).unlink()
        await cluster.api.wait_until(POD, lambda found: found is None, node_cluster.PATIENCE)


async def said(cluster):
    """What the container has written; a static pod's folder is named after its hash."""
    found = await cluster.api.get(POD)
    uid = found["metadata"]["annotations"]["kubernetes.io/config.hash"]
    meta = {**found["metadata"], "uid": uid}
    return cluster.node.pod_log({"metadata": meta}, "extender")[-4000:]


def is_ready(pod):
    conditions = (pod or {}).get("status", {}).get("conditions", ())
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


async def page(cluster, path):
    """A page of its health port, which only the node itself reaches."""
    busybox = cluster.node.busybox
    url = f"http://127.0.0.1:9212{path}"
    status, text = await cluster.node.command(busybox, "wget", "-q", "-O", "-", url)
    assert status == 0, text
    return text


async def test_the_kubelet_makes_it_ready(cluster, mirror):
    assert mirror["spec"]["hostNetwork"]
    assert "kubernetes.io/config.mirror" in mirror["metadata"]["annotations"]
    (status,) = mirror["status"]["containerStatuses"]
    assert status["restartCount"] == 0
    said = json.loads(await page(cluster, "/readyz"))
    assert said["ready"]


async def test_it_runs_as_nobody_in_particular_and_tells_its_name(cluster, mirror):
    (status,) = mirror["status"]["containerStatuses"]
    container = status["containerID"].partition("://")[2]
    # The oldest one that is still there: what a probe runs in the container ends at any moment.
    found = f"grep -l {container} /proc/[0-9]*/cgroup | cut -d/ -f3 | sort -n"
    line = f"{found} | while read pid; do cat /proc/$pid/status && break; done"
    _, said = await cluster.node.command("sh", "-c", line)
    fields = dict(entry.split(":", 1) for entry in said.splitlines() if ":" in entry)
    assert set(fields["Uid"].split()) == {str(in_place_files.USER)}
    assert int(fields["CapEff"], 16) == 0
    assert fields["Seccomp"].strip() == "2"
    figures = await page(cluster, "/metrics")
    assert "koord_server_certificate_end_seconds" in figures
