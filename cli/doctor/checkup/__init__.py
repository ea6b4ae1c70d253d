"""What an installation can suffer from: facts in, findings out.

Here are the checks behind `koord doctor`, one topic per file and one visible list of them. Nothing
here reads a cluster, a clock or a file: the shell `cli.doctor.survey` does.
"""
