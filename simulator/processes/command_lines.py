"""The command lines of a control plane: which flags make which program."""

import dataclasses
import pathlib
from collections.abc import Mapping, Sequence

NAMES = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
PORTS = ("etcd", "peer", "kube-apiserver", "kube-controller-manager")

# Who did what to which object, without bodies; the log grows by some 600 bytes a call.
AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata"}],
}


@dataclasses.dataclass(frozen=True, slots=True)
class Program:
    """One program of a plane: how to start it and where it says that it is ready."""

    name: str
    binary: str
    arguments: tuple[str, ...]
    ready: tuple[str, ...]
    """URLs that answer when it is ready; the next one counts where a release lacks the former."""


@dataclasses.dataclass(frozen=True, slots=True)
class Layout:
    """Where the programs of one plane listen and keep their files."""

    workdir: pathlib.Path
    ports: Mapping[str, int]

    @property
    def certificates(self) -> pathlib.Path:
        """The folder of the API server's certificate, the tokens and the signing key."""
        return self.workdir / "certificates"

    @property
    def signing_key(self) -> pathlib.Path:
        """What signs the tokens of service accounts."""
        return self.certificates / "signing.key"

    @property
    def verifying_key(self) -> pathlib.Path:
        """What proves the tokens of service accounts."""
        return self.certificates / "signing.pub"

    @property
    def tokens(self) -> pathlib.Path:
        """The static tokens of people and components."""
        return self.certificates / "tokens.csv"

    @property
    def audit_policy(self) -> pathlib.Path:
        """What the API server writes down of each call."""
        return self.workdir / "audit-policy.json"

    @property
    def audit_log(self) -> pathlib.Path:
        """The calls that the API server wrote down."""
        return self.workdir / "audit.log"

    def url(self, name: str, scheme: str = "https") -> str:
        """Where a program listens."""
        return f"{scheme}://127.0.0.1:{self.ports[name]}"


@dataclasses.dataclass(frozen=True, slots=True)
class Switches:
    """What a caller may change about the programs."""

    node_lifecycle: bool = False
    audit: bool = False
    service_routing: bool = False
    apiserver_flags: Sequence[str] = ()
    controllers_flags: Sequence[str] = ()


def etcd(layout: Layout) -> Program:
    """The store, without syncing to disk: nothing of it outlives the plane."""
    client, peer = layout.url("etcd", "http"), layout.url("peer", "http")
    arguments = (
        f"--data-dir={layout.workdir / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--unsafe-no-fsync",
        "--log-level=warn",
    )
    return Program("etcd", "etcd", arguments, (f"{client}/health",))


def apiserver(layout: Layout, switches: Switches) -> Program:
    """The API server with RBAC, static tokens and service accounts."""
    name = "kube-apiserver"
    arguments = (
        f"--etcd-servers={layout.url('etcd', 'http')}",
        "--bind-address=127.0.0.1",
        f"--secure-port={layout.ports[name]}",
        f"--cert-dir={layout.certificates}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={layout.verifying_key}",
        f"--service-account-signing-key-file={layout.signing_key}",
        f"--token-auth-file={layout.tokens}",
        "--authorization-mode=Node,RBAC",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--endpoint-reconciler-type=none",
        "--max-requests-inflight=3000",
        "--max-mutating-requests-inflight=1500",
        *_optional(layout, switches),
        *switches.apiserver_flags,
    )
    return Program(name, name, arguments, (f"{layout.url(name)}/readyz",))


def _optional(layout: Layout, switches: Switches) -> list[str]:
    flags = []
    if not switches.node_lifecycle:
        # Without a node-lifecycle controller a new node's taint would stay for ever.
        flags.append("--disable-admission-plugins=TaintNodesByCondition")
    if switches.audit:
        flags.append(f"--audit-policy-file={layout.audit_policy}")
        flags.append(f"--audit-log-path={layout.audit_log}")
    if switches.service_routing:
        # There is no kube-proxy: the API server itself has to find what is behind a Service.
        flags.append("--enable-aggregator-routing=true")
    return flags


def controllers(layout: Layout, switches: Switches, kubeconfig: pathlib.Path) -> Program:
    """The controllers, each as its own service account."""
    name = "kube-controller-manager"
    off = ["node-ipam-controller"]
    if not switches.node_lifecycle:
        off.append("node-lifecycle-controller")
    arguments = (
        f"--kubeconfig={kubeconfig}",
        f"--service-account-private-key-file={layout.signing_key}",
        f"--root-ca-file={layout.certificates / 'apiserver.crt'}",
        "--use-service-account-credentials",
        "--leader-elect=false",
        f"--controllers=*,{','.join(f'-{controller}' for controller in off)}",
        "--bind-address=127.0.0.1",
        f"--secure-port={layout.ports[name]}",
        f"--cert-dir={layout.workdir / 'controller-certificates'}",
        *switches.controllers_flags,
    )
    return Program(name, name, arguments, (f"{layout.url(name)}/healthz",))


def scheduler(
    layout: Layout, name: str, config: pathlib.Path, binary: str = "kube-scheduler"
) -> Program:
    """A scheduler; all but its address is in its configuration file."""
    arguments = (
        f"--config={config}",
        "--bind-address=127.0.0.1",
        f"--secure-port={layout.ports[name]}",
        f"--cert-dir={layout.workdir / f'{name}-certificates'}",
    )
    url = layout.url(name)
    return Program(name, binary, arguments, (f"{url}/readyz", f"{url}/healthz"))
