"""Device daemon: writes what vendor tools and sysfs tell of devices, and labels the node."""
