"""A container runtime, a hook server and a kubelet of the CRI proxy, over real sockets."""

import contextlib
import functools
import json

import grpclib.client
import grpclib.server
from grpclib import const

from api.koordinator import runtime_hooks
from process.http import grpc_bytes
from runtimeproxy import app
from runtimeproxy import settings as proxy_settings
from runtimeproxy.cri import messages
from tests import patience

CODEC = grpc_bytes.Messages()
_STREAMS = const.Cardinality.STREAM_STREAM


class _Everything(dict):
    """Every method there is, by one handler."""

    def __init__(self, server):
        self._server = server

    def get(self, path, default=None):
        return const.Handler(functools.partial(self._server.handle, path), _STREAMS, bytes, bytes)


class Server:
    """Answers calls of any name: `answers` by path, with bytes, a list of them or an error."""

    def __init__(self, path):
        self.path, self.calls, self.metadata, self.answers = path, [], [], {}
        self.trailers = {}
        self._server = None

    async def start(self):
        self.path.unlink(missing_ok=True)
        self._server = grpclib.server.Server(
            [], codec=CODEC, status_details_codec=grpc_bytes.Details()
        )
        self._server._mapping = _Everything(self)
        make, self._protocols = self._server._protocol_factory, []

        def made():
            self._protocols.append(make())
            return self._protocols[-1]

        self._server._protocol_factory = made
        await self._server.start(path=str(self.path))

    async def kill(self):
        """Close the listener and every connection, in the middle of whatever happens."""
        if self._server is not None:
            for protocol in self._protocols:
                protocol.processor.connection.close()
            self._server.close()
            await self._server.wait_closed()
            self._server = None
        self.path.unlink(missing_ok=True)

    async def handle(self, path, stream):
        request = await stream.recv_message()
        self.calls.append((path, request))
        self.metadata.append(dict(stream.metadata))
        answer = self.answers.get(path, b"")
        if callable(answer):
            answer = answer(request)
        if hasattr(answer, "__await__"):
            answer = await answer
        if isinstance(answer, Exception):
            raise answer
        for one in [answer] if isinstance(answer, bytes) else answer:
            await stream.send_message(one)
        await stream.send_trailing_metadata(metadata=self.trailers)

    def asked(self, name):
        """The requests of a method, by the end of its path."""
        return [request for path, request in self.calls if path.endswith(f"/{name}")]


class Runtime(Server):
    """A runtime that gives out ids."""

    def __init__(self, path):
        super().__init__(path)
        self.count = 0
        self.answers |= {
            messages.path("RunPodSandbox"): lambda _: self._made(
                "RunPodSandboxResponse", "sandbox"
            ),
            messages.path("CreateContainer"): lambda _: self._made(
                "CreateContainerResponse", "container"
            ),
        }

    def _made(self, kind, what):
        self.count += 1
        field = "pod_sandbox_id" if what == "sandbox" else "container_id"
        return messages.new(kind, **{field: f"{what}-{self.count}"}).SerializeToString()


class HookServer(Server):
    """A hook server; `respond` says by stage what it wants, as fields of the response."""

    def __init__(self, path):
        super().__init__(path)
        self.requests = []

    def respond(self, stage, make=lambda request: {}):
        def answer(request):
            read = runtime_hooks.CLASSES[stage.request].FromString(request)
            self.requests.append((stage, read))
            made = make(read)
            if isinstance(made, Exception) or hasattr(made, "__await__"):
                return made
            return runtime_hooks.new(stage.response, **made).SerializeToString()

        self.answers[stage.path] = answer

    def register(self, folder, policy="Ignore", name="koordlet.json"):
        stages = [one.value for one in runtime_hooks.Stage if one.path in self.answers]
        content = {"remote-endpoint": str(self.path), "runtime-hooks": stages}
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(json.dumps({**content, "failure-policy": policy}))


class Kubelet:
    """Calls of any method, with bytes."""

    def __init__(self, path):
        self.channel = grpclib.client.Channel(path=path, codec=CODEC)

    async def call(self, path, request, metadata=None, timeout=60):
        """Return the messages and the trailers of a response."""
        async with self.channel.request(
            path, _STREAMS, bytes, bytes, timeout=timeout, metadata=metadata
        ) as stream:
            await stream.send_message(request, end=True)
            found = [one async for one in stream]
            await stream.recv_trailing_metadata()
            return found, dict(stream.trailing_metadata)

    async def cri(self, method, kind, **fields):
        """Call a method of the RuntimeService with a message."""
        request = messages.new(kind, **fields).SerializeToString()
        found, _ = await self.call(messages.path(method), request)
        return found[0]

    async def run_pod(self, uid="u1", labels=None, annotations=None):
        config = {
            "metadata": {"name": f"pod-{uid}", "uid": uid, "namespace": "default"},
            "labels": labels or {},
            "annotations": annotations or {},
            "linux": {"cgroup_parent": f"/kubepods/pod{uid}"},
        }
        found = await self.cri("RunPodSandbox", "RunPodSandboxRequest", config=config)
        return messages.read("RunPodSandboxResponse", found).pod_sandbox_id

    async def create(self, pod, name="main", resources=None, envs=(), annotations=None):
        config = {
            "metadata": {"name": name},
            "envs": [{"key": key, "value": value} for key, value in envs],
            "annotations": annotations or {},
            "linux": {"resources": resources or {"cpu_shares": 2, "oom_score_adj": 900}},
        }
        found = await self.cri(
            *("CreateContainer", "CreateContainerRequest"), pod_sandbox_id=pod, config=config
        )
        return messages.read("CreateContainerResponse", found).container_id

    async def start(self, container):
        await self.cri("StartContainer", "ContainerRequest", container_id=container)

    async def stop(self, container):
        await self.cri("StopContainer", "ContainerRequest", container_id=container)

    def close(self):
        self.channel.close()


class World:
    """A runtime, a hook server, the proxy's settings, and kubelets that are connected."""

    def __init__(self, folder, clock):
        self.folder, self.clock = folder, clock
        self.runtime = Runtime(folder / "runtime.sock")
        self.hooks = HookServer(folder / "hooks.sock")
        self.registered = folder / "hookserver.d"
        self.settings = proxy_settings.Settings(
            koord_runtimeproxy_endpoint=str(folder / "run/proxy.sock"),
            remote_runtime_service_endpoint=f"unix://{folder / 'runtime.sock'}",
            hook_server_folder=self.registered,
            health=proxy_settings.HealthServer(port=0, linger_seconds=0),
        )
        self._kubelets = []

    def kubelet(self):
        made = Kubelet(self.settings.listen)
        self._kubelets.append(made)
        return made

    @contextlib.asynccontextmanager
    async def proxy(self, *, listed=True, **changed):
        settings = self.settings.model_copy(update=changed)
        async with app.running(settings, access=None, clock=self.clock) as running:
            if listed:
                await patience.until(lambda: running.proxy.restored, self.clock.settle)
            yield running

    async def close(self):
        for one in self._kubelets:
            one.close()
        for server in (self.runtime, self.hooks):
            await server.kill()
