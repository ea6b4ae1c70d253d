"""One reason to move a pod per file. Pure. Not built yet."""
