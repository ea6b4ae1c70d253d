"""NodeResourcesFitPlus: nodes scored by the requested resources, each with its own strategy."""
