"""One admission rule per file. Pure."""
