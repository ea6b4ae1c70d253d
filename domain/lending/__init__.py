"""Overcommit: how much capacity a node lends to batch and mid pods."""
