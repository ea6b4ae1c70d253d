"""Through what this node talks to others, and what orders its packets."""

from agent.host import files, netlink_socket, tc_messages
from agent.model import state

_NET_ADMIN = 12


def look(link: netlink_socket.Link | None = None, interface: str | None = None) -> state.Network:
    """Look at the interface of the default route."""
    link = link or netlink_socket.Kernel()
    name = netlink_socket.default_interface() if interface is None else interface
    try:
        namespace = str(link.namespace())
        if not name:
            return state.Network(namespace=namespace)
        index = link.index(name)
        roots = [
            one
            for one in map(
                tc_messages.queue, link.dump(tc_messages.dump(tc_messages.GET_QUEUE, index))
            )
            if one.interface == index and one.parent == tc_messages.ROOT
        ]
        found = map(tc_messages.address, link.dump(tc_messages.dump_addresses()))
        addresses = frozenset(netlink_socket.text(one) for one in found if one)
    except (OSError, ValueError) as error:
        return state.Network(problem=str(error))
    queue = f"{roots[0].kind} {roots[0].handle >> 16:x}:" if roots else "none"
    return state.Network(name, namespace, queue, addresses, _permitted())


def _permitted() -> bool:
    """Tell whether this process has CAP_NET_ADMIN."""
    try:
        lines = files.read("/proc/thread-self/status").decode("ascii", "replace").splitlines()
    except files.ReadingError:
        return False
    masks = (int(line.split()[1], 16) for line in lines if line.startswith("CapEff:"))
    return any(mask >> _NET_ADMIN & 1 for mask in masks)
