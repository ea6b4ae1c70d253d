"""Settings of the descheduler: what its configuration file does not say."""

from pathlib import Path
from typing import Literal

import pydantic

from api import names
from descheduler.placement.settings import PlacementSettings
from descheduler.receipts.settings import ReceiptSettings
from process.configuration import settings

Mode = Literal["enforce", "observe", "off"]


class LeaderElectionSettings(settings.Settings):
    """Which of several replicas works; what is missing is as the configuration file says."""

    enabled: bool | None = None
    """Compete for the lease; a single replica may go without."""
    name: str = ""
    """Name of the lease; replicas that share it take turns."""
    namespace: str = ""
    """Namespace of the lease."""
    identity: str = ""
    """Who we are in the lease; the host name and a random part when empty."""
    lease_seconds: float | None = pydantic.Field(default=None, gt=0)
    """How long a lease holds after its last renewal; the longest pause when a leader dies."""
    renew_seconds: float | None = pydantic.Field(default=None, gt=0)
    """How long a leader tries to renew before it steps down by itself."""
    retry_seconds: float | None = pydantic.Field(default=None, gt=0)
    """How long everyone waits between tries."""


class HealthSettings(settings.ServerSettings):
    """The listener for probes and scrapers, which come from outside the pod."""

    host: str = "0.0.0.0"  # noqa: S104 - see above
    """Address to listen on; `127.0.0.1` for this machine only."""
    port: int = pydantic.Field(default=10251, ge=0, le=65535)
    """TCP port to listen on; 0 lets the system choose a free one."""


class GainSettings(settings.Settings):
    """What a move has to gain, in points; one point of cost is the eviction of an ordinary pod."""

    least_gain_per_cost: float = pydantic.Field(default=0.25, gt=0)
    """Moves that gain less per point of cost are not made."""
    resources: dict[str, int] = pydantic.Field(
        default_factory=lambda: {names.CPU: 1, names.MEMORY: 1}, min_length=1
    )
    """Weight of each resource by whose use nodes are compared."""
    emptied_points: float = pydantic.Field(default=50.0, gt=0)
    """What an emptied node gains."""


class Settings(settings.Settings):
    """Everything that can be set for the descheduler besides its configuration file."""

    configuration: Path | None = None
    """File with a DeschedulerConfiguration: profiles, plug-ins, limits, the interval of rounds;
    without one nothing is moved but what PodMigrationJobs ask for. A change needs a restart."""
    mode: Mode = "enforce"
    """`observe`: rounds are planned, reported and counted, and no pod is moved; `off`: no rounds.
    The live switch `descheduler` overrules it, for PodMigrationJobs as well."""
    dry_run: bool = False
    """Plan and report only, whatever the configuration file says."""
    config_namespace: str = names.NAMESPACE
    """Namespace of the ConfigMaps of live switches and of the scheduler's plug-ins."""
    leader_election: LeaderElectionSettings = LeaderElectionSettings()
    """Which replica works."""
    finds_targets: bool = True
    """Move pods only where the scheduler's own plug-ins find a better node for them, and tell the
    Reservation that node. Off, as the reference does: the scheduler places them later."""
    placement: PlacementSettings = PlacementSettings()
    """How nodes are found for pods that leave theirs."""
    gain: GainSettings = GainSettings()
    """What moves have to gain; only where targets are found."""
    receipts: ReceiptSettings = ReceiptSettings()
    """What moves have brought, and when a profile is halted because its moves do not pay."""
    feature_gates: dict[str, bool] = pydantic.Field(default_factory=dict)
    """Features by name, switched on or off; an unknown name is an error."""
    health: HealthSettings | None = None
    """Where /healthz, /readyz and /metrics are served; as healthzBindAddress of the configuration
    file says when missing, 0.0.0.0:10251 by default."""
    log: settings.LogSettings = settings.LogSettings()
    """What is logged and how."""
