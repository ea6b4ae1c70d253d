"""Errors that end a process and say themselves what to do about it."""


class ExplainedError(RuntimeError):
    """Something outside the program is wrong; the text is for a person, a traceback is not."""
