"""Informers of configuration: plug-ins in force, their arguments, templates."""
