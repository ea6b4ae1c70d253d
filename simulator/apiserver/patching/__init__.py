"""Patches of every type, server-side apply and field ownership."""
