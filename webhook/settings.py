"""Settings of the webhook."""

from pathlib import Path
from typing import Literal, Self

import pydantic

from process.configuration import settings


class CertificateSettings(settings.Settings):
    """The serving certificate: ours, kept in a Secret, unless files are named."""

    secret: str = "koord-webhook-certificates"  # noqa: S105 - the name of a Secret
    """Secret in `namespace` that keeps authorities and leaves, shared by every replica."""
    names: tuple[str, ...] = ("koord-webhook.koordinator-system.svc",)
    """DNS names and addresses that the API server calls; the first one is verified."""
    folder: Path = Path("/tmp/koord-webhook")  # noqa: S108 - a private tmpfs in the image
    """Where the served pair is written for the TLS server; a tmpfs is best."""
    look_seconds: float = pydantic.Field(default=60.0, gt=0)
    """How often the Secret is looked at, for what is due and for what other replicas did."""
    authority_file: Path | None = None
    """PEM bundle that verifies `server.tls`, where another issuer provides that pair."""


class RegistrationSettings(settings.Settings):
    """The webhook configuration objects that the API server reads."""

    enabled: bool = True
    """Keep the two configuration objects true; off where another program owns them."""
    name: str = "koord-webhook"
    """Name of both configuration objects."""
    url: str = ""
    """Base URL the API server calls, `self` for the address listened on; empty calls `service`."""
    service: str = "koord-webhook"
    """Service in `namespace` that leads to this process on port 443."""
    timeout_seconds: int = pydantic.Field(default=3, ge=2, le=30)
    """How long the creation of a pod waits for both answers together, in whole seconds."""
    failure_policy: Literal["Ignore", "Fail"] = "Ignore"
    """What happens to pods while no webhook answers: Ignore lets them pass unchanged."""
    excluded_namespaces: tuple[str, ...] = ("kube-system",)
    """Namespaces never looked at, besides our own."""


class BindingSettings(settings.Settings):
    """Who may bind pods to nodes, while the gate BindingAdmissionWebhook is on."""

    users: tuple[str, ...] = ()
    """Parts of user names, such as system:kube-scheduler and the extender's ServiceAccount; no user
    is refused while it is empty."""
    namespaces: tuple[str, ...] = ("*",)
    """Namespaces that are looked at; * stands for all."""
    excluded_namespaces: tuple[str, ...] = ("kube-system",)
    """Namespaces that are not looked at."""
    bypass_labels: tuple[str, ...] = ("koordinator.sh/binding-admission-bypass",)
    """A pod with one of these labels may be bound by anybody."""
    bypass_annotations: tuple[str, ...] = ()
    """A pod with one of these annotations may be bound by anybody."""


class ProtectionSettings(settings.Settings):
    """Who may write what schedulers write on pods, while the gate ProtectedPodFields is on."""

    accounts: tuple[str, ...] = ()
    """Full user names, such as system:serviceaccount:koordinator-system:koord-scheduler."""
    groups: tuple[str, ...] = ("system:masters",)
    """Groups of users."""


class ReadSettings(settings.Settings):
    """How the webhook reads from the API server: what it watches, and the pods of bindings."""

    attempts: int = pydantic.Field(default=5, ge=1, le=20)
    """How often a read is tried while the API server does not answer or is overloaded."""
    seconds: float = pydantic.Field(default=30.0, gt=0)
    """How long one try may take."""
    in_flight: int = pydantic.Field(default=64, ge=1)
    """Requests under way at the same time; further ones wait for their turn."""


class QuotaSettings(settings.Settings):
    """What becomes of new pods whose quota has no room."""

    admission: Literal["gate", "deny", "none"] = "gate"
    """`gate` lets pods of a quota wait behind a scheduling gate, which the manager opens in fair
    order; `deny` refuses to create them; `none` leaves it to the filter of the extender."""
    opener: str = "koordinator-manager"
    """Lease in `namespace` of those who open gates: while it is not renewed, none are added."""


class GangSettings(settings.Settings):
    """What becomes of new pods that are members of a gang."""

    admission: Literal["gate", "none"] = "gate"
    """`gate` lets them wait behind a scheduling gate, which the extender opens when all of them
    have places, unless kube-scheduler is so far behind with members that a small gang is complete
    before it tries one; `none` leaves it to the filter of the extender. While the key `gangs` of
    the ConfigMap koord-switches is `observe` or `off`, no gates are added."""


class ReviewServer(settings.ServerSettings):
    """The listener for reviews, which the API server sends from another host."""

    host: str = "0.0.0.0"  # noqa: S104 - see above
    """Address to listen on; `127.0.0.1` for this machine only."""
    port: int = pydantic.Field(default=9876, ge=0, le=65535)
    """TCP port to listen on; 0 lets the system choose a free one."""
    max_body_bytes: int = pydantic.Field(default=7 * 1024 * 1024, ge=1024)
    """Largest request body; a review holds two objects of up to 3 MiB."""
    max_connection_age_seconds: float = pydantic.Field(default=60.0, ge=0)
    """Age after which the next answer on a connection asks the API server to dial again, so that
    replicas which are added get their share of the reviews; 0: never. Connections that were dialled
    together end one by one, the first at half of it."""
    announce_seconds: float = pydantic.Field(default=5.0, ge=0)
    """How long a stopping server goes on as before while /readyz already says no, so that the
    Service stops sending reviews here."""


class HealthServer(settings.ServerSettings):
    """The listener for probes and scrapers, which come from outside the pod."""

    host: str = "0.0.0.0"  # noqa: S104 - see above
    """Address to listen on; `127.0.0.1` for this machine only."""
    port: int = pydantic.Field(default=9877, ge=0, le=65535)
    """TCP port to listen on; 0 lets the system choose a free one."""


class Settings(settings.Settings):
    """Admission webhook: colocation profiles, batch resources and checks on every pod create."""

    namespace: str = "koordinator-system"
    """Namespace of the system."""
    mode: Literal["enforce", "observe", "off"] = "enforce"
    """`observe` answers every review with yes and logs what it would have changed or refused,
    `off` answers yes at once. The key `webhook` of the ConfigMap koord-switches overrules it."""
    server: ReviewServer = ReviewServer()
    """Where reviews are answered, always over TLS."""
    health: HealthServer = HealthServer()
    """Where /healthz, /readyz and /metrics are served."""
    certificates: CertificateSettings = CertificateSettings()
    """The serving certificate."""
    registration: RegistrationSettings = RegistrationSettings()
    """What the API server calls."""
    reads: ReadSettings = ReadSettings()
    """How the webhook reads from the API server."""
    binding: BindingSettings = BindingSettings()
    """Who may bind pods to nodes."""
    quota: QuotaSettings = QuotaSettings()
    """What becomes of new pods whose quota has no room."""
    gang: GangSettings = GangSettings()
    """What becomes of new pods that are members of a gang."""
    protection: ProtectionSettings = ProtectionSettings()
    """Who may write what schedulers write on pods."""
    settings_names_required: bool = False
    """Whether entries for some nodes in the cluster settings need a name of their own."""
    feature_gates: dict[str, bool] = pydantic.Field(default={})
    """Feature gates by name."""
    log: settings.LogSettings = settings.LogSettings()
    """What is logged and how."""

    @pydantic.model_validator(mode="after")
    def _foreign_pair(self) -> Self:
        if (self.server.tls is None) != (self.certificates.authority_file is None):
            raise ValueError(
                "server.tls and certificates.authorityFile belong together: name both to serve a "
                "pair of another issuer, or neither"
            )
        return self
