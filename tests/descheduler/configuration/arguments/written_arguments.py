"""Arguments as a configuration file writes them, read as the file's reader does."""

from descheduler.configuration.arguments import models
from domain.scheduler_settings import plugin_arguments
from domain.scheduler_settings.notes import Notes


def reading(name, **said):
    """Return the arguments and what is noted about them."""
    notes = Notes()
    of_type = plugin_arguments.Type("descheduler/v1alpha2", f"{name}Args")
    found = plugin_arguments.read(models.MODELS[name], said, "args", of_type, notes)
    return found, list(map(str, notes.faults)), list(map(str, notes.warnings))


def read(name, **said):
    """Return the arguments, which have no fault, with every default filled in."""
    found, faults, _ = reading(name, **said)
    assert faults == []
    return found.complete()
