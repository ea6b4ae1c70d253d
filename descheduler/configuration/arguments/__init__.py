"""Arguments of the descheduler's plug-ins: the args of a pluginConfig, one model per plug-in.

`parts` holds what several of them share, `models` is the table of all.
"""
