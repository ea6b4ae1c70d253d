"""The files that a node is configured by, and a small image for its pods."""

import hashlib
import io
import json
import tarfile

SANDBOX = "localhost/koord-test/pause:1"
BUSYBOX = "localhost/koord-test/busybox:1"
APPLETS = ("sh", "sleep", "cat", "dd", "ls", "nc", "wget")
KUBELET_PORT = 10250
PODS = "10.97.0.0/24"


def containerd(workdir, programs, snapshotter):
    """The configuration of containerd; a sandbox without CAP_SYS_RESOURCE may not lower scores."""
    runtime, images = "io.containerd.cri.v1.runtime", "io.containerd.cri.v1.images"
    return f"""version = 3
root = "{workdir}/containerd"
state = "/run/containerd"
[grpc]
  address = "/run/containerd/containerd.sock"
[plugins.'{runtime}']
  restrict_oom_score_adj = true
  [plugins.'{runtime}'.cni]
    bin_dirs = ["{programs.plugins}"]
    conf_dir = "{workdir}/cni"
  [plugins.'{runtime}'.containerd]
    default_runtime_name = "runc"
  [plugins.'{runtime}'.containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins.'{runtime}'.containerd.runtimes.runc.options]
      BinaryName = "{programs.runc}"
[plugins.'{images}']
  snapshotter = "{snapshotter}"
  [plugins.'{images}'.pinned_images]
    sandbox = "{SANDBOX}"
[plugins.'io.containerd.nri.v1.nri']
  socket_path = "/run/nri/nri.sock"
"""


def network(workdir):
    """A network of pairs: every pod has a cable to the node, and nothing leaves the node."""
    ipam = {
        "type": "host-local",
        "dataDir": f"{workdir}/addresses",
        "ranges": [[{"subnet": PODS}]],
        "routes": [{"dst": "0.0.0.0/0"}],
    }
    plugins = [{"type": "ptp", "ipMasq": False, "ipam": ipam}]
    return json.dumps({"cniVersion": "1.0.0", "name": "pods", "plugins": plugins})


def kubelet(workdir, runtime):
    """The configuration of the kubelet; `runtime` is the socket of its container runtime."""
    return json.dumps(
        {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": True}},
            "authorization": {"mode": "Webhook"},
            "cgroupDriver": "cgroupfs",
            "failCgroupV1": False,
            "containerRuntimeEndpoint": f"unix://{runtime}",
            "enforceNodeAllocatable": ["pods"],
            "evictionHard": {"memory.available": "1Mi", "nodefs.available": "1%"},
            "failSwapOn": False,
            "imageGCHighThresholdPercent": 100,
            "localStorageCapacityIsolation": False,
            "makeIPTablesUtilChains": False,
            "nodeStatusUpdateFrequency": "5s",
            # Lowering it takes a capability that sandboxes lack.
            "oomScoreAdj": 0,
            "podLogsDir": f"{workdir}/pod-logs",
            "port": KUBELET_PORT,
            "resolvConf": f"{workdir}/resolv.conf",
            "staticPodPath": f"{workdir}/static",
            "volumePluginDir": f"{workdir}/volume-plugins",
        }
    )


def archive(path, name, program, command, *, called="busybox", applets=APPLETS):
    """Write a docker archive of one layer: a static program, and its other names."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as tar:
        for folder in ("bin", "tmp"):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if folder == "tmp" else 0o755
            tar.addfile(entry)
        data = program.read_bytes()
        entry = tarfile.TarInfo(f"bin/{called}")
        entry.size, entry.mode = len(data), 0o755
        tar.addfile(entry, io.BytesIO(data))
        for applet in applets:
            entry = tarfile.TarInfo(f"bin/{applet}")
            entry.type, entry.linkname = tarfile.SYMTYPE, called
            tar.addfile(entry)
    content = layer.getvalue()
    config = {
        "architecture": "amd64",
        "os": "linux",
        "config": {"Cmd": command, "Env": ["PATH=/bin"]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{_digest(content)}"]},
    }
    manifest = [{"Config": "config.json", "RepoTags": [name], "Layers": ["layer.tar"]}]
    with tarfile.open(path, mode="w") as tar:
        for file, body in (
            ("config.json", json.dumps(config).encode()),
            ("layer.tar", content),
            ("manifest.json", json.dumps(manifest).encode()),
        ):
            entry = tarfile.TarInfo(file)
            entry.size = len(body)
            tar.addfile(entry, io.BytesIO(body))


def _digest(data):
    return hashlib.sha256(data).hexdigest()
