"""Admission: built-in plug-ins and webhooks."""
