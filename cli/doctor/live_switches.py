"""What the live switches say, in sentences for people. Pure."""

import difflib
from collections.abc import Mapping
from typing import Final

from agent.model import capability_matrix, live_switches
from domain import wording

KNOWN: Final[Mapping[str, str]] = {
    "webhook": "changes and checks of pods and objects at admission",
    "extender": "filters, scores and binds beside the scheduler",
    "preemption": "evictions for pods of higher priority inside a quota",
    "quota-gates": "gates that hold pods until their quota has room",
    "quota-reclaim": "evictions of pods that borrow from a quota",
    "gangs": "gates that new pods of gangs get",
    "gang-repair": "restarts of gangs that have lost members",
    "descheduler": "rounds of the descheduler",
    "agent": "everything the agents do on nodes",
}
"""Every switch but those below `agent`, and what it is for."""
MODES: Final = frozenset(live_switches.Mode)
MOST_NODES: Final = 3


def told(
    data: Mapping[str, str], nodes: Mapping[str, Mapping[str, str]]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what is switched, of which nodes by their labels, and what cannot be parsed."""
    live = live_switches.read(data, live_switches.Live(), capability_matrix.STRATEGIES)
    said, unknown = [], list(live.problems)
    for key, text in sorted(data.items()):
        word = text.strip().lower()
        if key.partition(".")[0] != live_switches.KEY:
            if key not in KNOWN:
                unknown.append(f"{key}: there is no such switch{_near(key)}")
            elif word not in MODES:
                unknown.append(f"{key} is {text[:40]!r}: write {', '.join(live_switches.Mode)}")
            elif word != live_switches.Mode.ENFORCE:
                said.append(f"{key} is {word}")
        elif key in live.accepted and word != live_switches.Mode.ENFORCE:
            said.append(f"{key} is {' or '.join(text.split())}{_where(live, key, nodes)}")
    return tuple(said), tuple(unknown)


def _near(key: str) -> str:
    found = difflib.get_close_matches(key, KNOWN, n=1)
    return f"; did you mean {found[0]}?" if found else f"; there are {', '.join(KNOWN)}"


def _where(live: live_switches.Live, key: str, nodes: Mapping[str, Mapping[str, str]]) -> str:
    """Return which nodes a key is about, where it does not concern all of them."""
    if not key.startswith(f"{live_switches.KEY}.nodes."):
        return ""
    alone = live_switches.Live(nodes=tuple(one for one in live.nodes if one[1] == key))
    found = sorted(name for name, labels in nodes.items() if alone.of_node(labels).key == key)
    more = ", ..." if len(found) > MOST_NODES else ""
    named = f" ({', '.join(found[:MOST_NODES])}{more})" if found else ""
    return f": {len(found)} of {wording.count(len(nodes), 'node', 'nodes')}{named}"
