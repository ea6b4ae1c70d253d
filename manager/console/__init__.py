"""The web console: what the cluster lends, uses and waits for, in a browser, for one's own rights.

It reads API objects only, through the informers of the manager and a few of its own, and shows of
them what the user's token may list.
"""
