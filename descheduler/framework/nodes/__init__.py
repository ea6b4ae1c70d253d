"""What plug-ins compare nodes by: room, fit, measured load, use by request. Pure."""
