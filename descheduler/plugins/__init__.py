"""One reason to move a pod per folder. Pure: plug-ins know the framework and the model only."""
