"""Readings of disks and of the volumes of pods."""
