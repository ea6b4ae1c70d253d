"""What an installation can suffer from: facts in, findings out.

Here are the checks behind `koord doctor`, one topic per file and one visible list of them, and the
plan behind `koord uninstall`. Nothing here reads a cluster, a clock or a file: the shells
`cli.survey` and `cli.uninstall` do.
"""
