"""Plug-in name to class: one visible dict."""
