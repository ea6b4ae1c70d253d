"""Indexes from which the columns of a pod are taken, kept up to date as nodes and pods change.

Each has one position per node row. What a pod asks for is looked up once for all nodes and
remembered; what changes corrects only its own row in what is remembered, so that neither a pod nor
an event goes through every node again. The owner of the rows owns the indexes and alone changes
them; the arrays that they return are read-only and may follow later changes.
"""
