"""Capture: a stand-in pod that kube-scheduler binds becomes the place of its Reservation."""
