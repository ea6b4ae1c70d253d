"""What `koord doctor node` says of the container runtime of this host."""

from pathlib import Path
from typing import Final

from agent.model import capability_matrix

REGISTRATIONS: Final = Path("/etc/runtime/hookserver.d")
"""Where hook servers of a CRI proxy register."""
PROXY: Final = Path("/var/run/koord-runtimeproxy/runtimeproxy.sock")


def rows(socket: Path, registrations: Path = REGISTRATIONS) -> tuple[capability_matrix.Row, ...]:
    """Return whether plug-ins or hook servers are asked before a container starts."""
    if any(registrations.glob("*json")) and PROXY.is_socket():
        said = f"values are set before a container starts, by the CRI proxy at {PROXY}"
        return (capability_matrix.Row("hook server", capability_matrix.Verdict.WORKS, said),)
    if socket.is_socket():
        said = f"values are set before a container starts, by {socket}"
        return (capability_matrix.Row("nri", capability_matrix.Verdict.WORKS, said),)
    said = (
        f"values are set after a container has started: {socket} is no socket; enable NRI in the "
        "configuration of the container runtime"
    )
    return (capability_matrix.Row("nri", capability_matrix.Verdict.SUBSTITUTE, said),)
