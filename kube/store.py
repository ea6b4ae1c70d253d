"""Objects by key; newest version wins; no I/O."""
