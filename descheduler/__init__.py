"""The descheduler: moves pods off nodes where they should no longer be, one PodMigrationJob each.

A round looks at one picture of the cluster, asks plug-ins for suggestions, and lets a suggestion
become a move only where filters, limits and the gain allow it. Jobs then reserve, evict and check.
"""
