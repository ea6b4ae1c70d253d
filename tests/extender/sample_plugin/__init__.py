"""Slots: a sample plug-in that uses every extension point; docs/write-a-plugin.md builds it."""
