"""Single calls of the verbs: what each costs, by size of the cluster and by plug-in."""
