"""Hardware managers, one module per hardware type, and the registry that names them."""
