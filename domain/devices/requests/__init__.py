"""What a pod asks for of devices: legality, normalisation, templates. Pure."""
