"""Bounded access to this host: files, netlink, pressure figures, block devices."""
