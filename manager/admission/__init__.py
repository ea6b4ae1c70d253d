"""Whether the admission webhook answers, and which pods were created while it did not."""
