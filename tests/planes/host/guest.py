"""A small virtual machine with this machine's files and a kernel of Debian, whose groups are v2.

`python -m tests.planes.host.guest [arguments of pytest]` runs tests inside of it and ends as they
end. The machine is emulated, so everything is about twenty times slower and no timing means
anything. Its root file system is this machine's own, read-only; what it writes is in its memory. It
has an empty disk, `/dev/vda`.
"""

import argparse
import os
import pathlib
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from deploy.image import packages

ROOT = pathlib.Path(__file__).parents[3]
DEBIAN = ("busybox-static", "cpio", "linux-image-amd64", "qemu-system-x86", "seabios")
MODULES = (
    *("drivers/virtio/virtio", "drivers/virtio/virtio_ring"),
    *("drivers/virtio/virtio_pci_legacy_dev", "drivers/virtio/virtio_pci_modern_dev"),
    *("drivers/virtio/virtio_pci", "drivers/virtio/virtio_balloon", "drivers/block/virtio_blk"),
    *("net/9p/9pnet", "net/9p/9pnet_virtio", "fs/fscache/fscache", "fs/netfs/netfs", "fs/9p/9p"),
)
MEBIBYTES = 1536
DISK_MEBIBYTES = 1024
SECONDS = 1500
ON_BOTH = (
    *("strategies", "evictions", "identity", "limits", "layouts", "measured", "restart"),
    *("many_processes", "cpusets"),
)
"""The tests of this machine's groups that mean something on the guest's as well."""
END = re.compile(r"koord-guest: exit (\d+)")
ENVIRONMENT = (
    "KOORD_GUEST=1 KOORD_HOST=1 HOME=/tmp "
    "PYTHONDONTWRITEBYTECODE=1 PYTEST_DISABLE_PLUGIN_AUTOLOAD=1"
)
# Every import costs a second or so there.
PLUGINS = "-p no:cacheprovider -p pytest_asyncio.plugin -p pytest_timeout"
INIT = """#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t devtmpfs dev /dev
# Each pass loads what only needed modules of the passes before.
for pass in 1 2 3 4; do for module in /modules/*.ko; do insmod $module 2>/dev/null; done; done
mount -t 9p -o trans=virtio,version=9p2000.L,ro,cache=loose,msize=524288 host /host || poweroff -f
mount -t proc proc /host/proc
mount -t sysfs sys /host/sys
mount -t devtmpfs dev /host/dev
# A checkout may lie where memory is mounted next.
mkdir /checkout && mount --bind /host{root} /checkout
mount -t tmpfs tmp /host/tmp
mount -t tmpfs run /host/run
[ -d /host{root} ] || { mkdir -p /host{root} && mount --bind /checkout /host{root}; }
mount -t cgroup2 none /host/sys/fs/cgroup
ip link set lo up
chroot /host /bin/sh -c {command}
echo "koord-guest: exit $?"
poweroff -f
"""


def obstacle():
    """Why no guest can run on this machine, empty when one can."""
    if os.uname().machine != "x86_64":
        return "the guest is made for x86_64"
    if os.geteuid() != 0:
        return "the guest reads this machine's files as root"
    if reason := packages.obstacle():
        return reason
    try:
        packages.unpacked(DEBIAN)
    except packages.UnreachableError as error:
        return f"packages of Debian cannot be had: {str(error).splitlines()[-1]}"
    return ""


def run(command, *, seconds=SECONDS, out=sys.stdout):
    """Run a shell command in a fresh guest; return its exit code, or None where it never ended."""
    debian = packages.unpacked(DEBIAN)
    with tempfile.TemporaryDirectory(prefix="koord-guest-") as folder:
        initramfs = _initramfs(debian, pathlib.Path(folder), command)
        # A disk without anything on it, so that there are pages to read and traffic to limit.
        disk = pathlib.Path(folder, "disk")
        with disk.open("wb") as empty:
            empty.truncate(DISK_MEBIBYTES << 20)
        return _boot(debian, (initramfs, disk), seconds, out)


def _initramfs(debian, folder, command):
    tree = folder / "tree"
    for name in ("bin", "modules", "proc", "dev", "host"):
        (tree / name).mkdir(parents=True)
    shutil.copy(debian / "bin/busybox", tree / "bin/busybox")
    kernel = next((debian / "lib/modules").iterdir()) / "kernel"
    for module in MODULES:
        if (kernel / f"{module}.ko").exists():
            shutil.copy(kernel / f"{module}.ko", tree / "modules")
    init = tree / "init"
    init.write_text(
        INIT.replace("{root}", shlex.quote(str(ROOT))).replace("{command}", shlex.quote(command))
    )
    init.chmod(0o755)
    names = sorted(str(path.relative_to(tree)) for path in tree.rglob("*"))
    packed = folder / "initramfs"
    with packed.open("wb") as archive:
        subprocess.run(
            [debian / "bin/cpio", "-o", "-H", "newc", "--quiet"],
            cwd=tree,
            input="\n".join([".", *names, ""]).encode(),
            stdout=archive,
            check=True,
        )
    return packed


def _boot(debian, made, seconds, out):
    initramfs, disk = made
    libraries = [debian / "usr/lib/x86_64-linux-gnu", debian / "lib/x86_64-linux-gnu"]
    kernel = next((debian / "boot").glob("vmlinuz-*"))
    machine = [
        debian / "usr/bin/qemu-system-x86_64",
        *("-L", debian / "usr/share/qemu", "-L", debian / "usr/share/seabios"),
        *("-accel", "tcg,thread=multi", "-cpu", "max,vendor=GenuineIntel", "-m", str(MEBIBYTES)),
        # Two processors, each of one core with two threads, as only this vendor's are emulated.
        *("-smp", "4,sockets=2,cores=1,threads=2"),
        *("-display", "none", "-serial", "stdio", "-monitor", "none", "-nic", "none"),
        *("-no-reboot", "-kernel", kernel, "-initrd", initramfs),
        *("-append", "console=ttyS0 quiet loglevel=1 panic=-1 psi=1"),
        *("-drive", f"file={disk},format=raw,if=virtio,cache=unsafe"),
        "-virtfs",
        "local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap",
    ]
    with subprocess.Popen(
        machine,
        env={**os.environ, "LD_LIBRARY_PATH": ":".join(map(str, libraries))},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as emulator:
        # Whoever waits for lines waits for ever once the guest hangs.
        watchdog = subprocess.Popen(
            ["sh", "-c", f"sleep {seconds}; kill -9 {emulator.pid}"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        code = None
        try:
            for line in emulator.stdout:
                if end := END.search(line):
                    code = int(end[1])
                elif "SeaBIOS" not in line and "iPXE" not in line:
                    out.write(line)
                    out.flush()
        finally:
            # With what it sleeps in, or that would stay.
            os.killpg(watchdog.pid, signal.SIGKILL)
            watchdog.wait()
            emulator.kill()
    return code


def main(arguments=None):
    """Run pytest inside of a guest; its arguments are the arguments."""
    parser = argparse.ArgumentParser(prog="python -m tests.planes.host.guest", description=__doc__)
    parser.add_argument("--seconds", type=int, default=SECONDS, help="how long it may take")
    parser.add_argument("--command", help="run this in a shell instead of the tests")
    chosen, rest = parser.parse_known_args(arguments)
    if reason := obstacle():
        print(f"skipped: {reason}")
        return 0
    tests = rest or ["tests/guest", *(f"tests/host/test_{name}.py" for name in ON_BOTH)]
    python = shlex.quote(sys.executable)
    inside = chosen.command or (
        f"cd {shlex.quote(str(ROOT))} && {ENVIRONMENT} {python} -m pytest {PLUGINS} -v -rA "
        f"--color=no --durations=8 --confcutdir=tests/host {' '.join(map(shlex.quote, tests))}"
    )
    begin = time.monotonic()
    code = run(inside, seconds=chosen.seconds)
    if code is None:
        print(f"the guest did not end within {chosen.seconds} s, or died")
        return 1
    print(f"the guest took {time.monotonic() - begin:.0f} s")
    return code


if __name__ == "__main__":
    sys.exit(main())
