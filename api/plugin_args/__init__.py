"""Arguments of scheduler plug-ins: the args of a pluginConfig, one model per plug-in."""
