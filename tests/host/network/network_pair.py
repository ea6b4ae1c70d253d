"""A pair of interfaces between two networks of their own, and what the agent does to one."""

import contextlib
import ctypes
import socket
import subprocess
import threading
import time
from concurrent import futures

from agent.apply import executor, journal
from agent.apply.properties import property_files
from agent.hooks.network import network_qos
from agent.model import cgroup_layout, state, strategy_settings
from agent.observe.network import interfaces
from api import names
from api.koordinator.metadata import qos
from api.kubernetes import core

NEW_NETWORK = 0x4000_0000
SELF, ONLINE, BATCH, LIMITED = (f"10.99.0.{n}" for n in (1, 3, 4, 5))
THERE = "10.99.0.200"
NETWORK_QOS = "koordinator.sh/networkQOS"
TOTAL, MOST_BATCH, LIMIT = 800_000_000, 160_000_000, 40_000_000
"""Bits per second of the interface, of all batch pods together, and of the pod with a limit."""
WANTED = strategy_settings.Strategies(
    classes=strategy_settings.Classes(
        network={
            qos.QoS.LS: strategy_settings.Network(True, egress_request=50, egress_limit=100),
            qos.QoS.BE: strategy_settings.Network(True, egress_request=5, egress_limit="160M"),
        }
    ),
    system=strategy_settings.System(bandwidth=TOTAL),
)
LIVES = 8


class Network:
    """A thread with a network of its own."""

    def __init__(self):
        self._thread = futures.ThreadPoolExecutor(1)

    def __call__(self, do, *arguments):
        """Return what a function returns when it is called in that network."""
        return self.start(do, *arguments).result(40)

    def start(self, do, *arguments):
        return self._thread.submit(do, *arguments)

    def close(self):
        self._thread.shutdown()


def unshare():
    if ctypes.CDLL(None, use_errno=True).unshare(NEW_NETWORK) != 0:
        raise OSError("no network of its own for a thread")
    return threading.get_native_id()


def run(line):
    done = subprocess.run(line.split(), capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"{line}: {done.stderr}")
    return done.stdout


def standing():
    """What a person sees of the interface."""
    return "".join(run(f"tc {kind} show dev k0") for kind in ("qdisc", "class", "filter"))


def pod(name, address, quality, bits="", **annotations):
    labels = {"koordinator.sh/qosClass": quality} if quality else {}
    meta = core.ObjectMeta(
        name=name, namespace="default", uid=name, labels=labels, annotations=annotations
    )
    status = core.PodStatus(phase="Running", pod_ip=address)
    asked = core.ResourceRequirements(requests={names.NETWORK_BANDWIDTH: bits} if bits else {})
    spec = core.PodSpec(containers=(core.Container(name="app", resources=asked),))
    return state.PodState(core.Pod(metadata=meta, spec=spec, status=status), "Burstable")


PODS = (
    pod("online", ONLINE, "LS"),
    pod("batch", BATCH, "BE"),
    pod("limited", LIMITED, "BE", **{NETWORK_QOS: f'{{"egressLimit":"{LIMIT}"}}'}),
)


def decided(pods=PODS, wanted=WANTED):
    return network_qos.decide(state.NodeState(at=0, pods=pods, network=interfaces.look()), wanted)


def acting(folder, *, writing=True):
    kept = journal.Journal(folder, "boot")
    kept.load()
    arranged = cgroup_layout.Layout("/nowhere", 1, "cgroupfs")
    return executor.Executor(property_files.Knobs(arranged), kept, writing=writing)


def outcomes(outcome):
    assert not outcome.problem
    return {what for what, _, _ in outcome.records}


def speed(networks, source, seconds=0.8):
    """Bytes per second that arrive at the other end from one address."""
    return together(networks, [source], seconds)[0]


def together(networks, sources, seconds=0.8):
    """Bytes per second that arrive at the other end from addresses that send at once."""
    near, far = networks
    listener = far(socket.create_server, (THERE, 0))
    port = listener.getsockname()[1]
    begun = threading.Barrier(len(sources))
    stopped = threading.Event()

    def receive(taken):
        begun.wait(20)
        # What the bucket held from before passes first.
        begin, got = time.monotonic() + 0.4, 0
        while (now := time.monotonic()) < begin + seconds:
            data = taken.recv(1 << 16)
            got += len(data) if now > begin else 0
        return got / seconds

    def send(sender):
        with contextlib.suppress(ConnectionError, OSError):
            while not stopped.is_set():
                sender.send(bytes(1 << 16))

    def connected(source):
        sender = socket.socket()
        sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 17)
        sender.bind((source, 0))
        sender.settimeout(20)
        sender.connect((THERE, port))
        return sender

    with listener, contextlib.ExitStack() as stack:
        pool = stack.enter_context(futures.ThreadPoolExecutor(2 * len(sources)))
        pairs = []
        # A socket belongs to the network in which it was made.
        for source in sources:
            sender = stack.enter_context(near(connected, source))
            taken, _ = listener.accept()
            taken.settimeout(20)
            pairs.append((sender, stack.enter_context(taken)))
        arriving = [pool.submit(receive, taken) for _, taken in pairs]
        for sender, _ in pairs:
            pool.submit(send, sender)
        try:
            return [one.result(40) for one in arriving]
        finally:
            stopped.set()
