"""What the descheduler keeps of the objects that it watches: small, frozen values. Pure."""
