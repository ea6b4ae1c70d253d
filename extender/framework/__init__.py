"""The scheduling framework: what plug-ins implement and how they are run. Pure."""
