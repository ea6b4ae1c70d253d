"""Bandwidth that pods and classes may use, in every shape that reads it. Pure."""
