"""`koord report`: what colocation gave in the last days, or would give."""

from cli.report import command

add_arguments = command.add_arguments
