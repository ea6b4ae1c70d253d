"""One question per plug-in, one plug-in per file. Pure."""
