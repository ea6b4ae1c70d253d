"""Network topology: the tree of network domains above nodes, and gangs gathered within it. Pure."""
