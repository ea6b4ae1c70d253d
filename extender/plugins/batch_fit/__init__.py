"""BatchFit: keeps batch pods within what a node lends."""
