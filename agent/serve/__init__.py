"""Answers to container runtimes: what runtime hooks want, before a container starts.

`adjusted_messages` turns adjustments into messages of NRI (pure), `write_rivals` says when another
plug-in writes the same fields (pure), `snapshots` is what a tick freezes (pure), `container_events`
answers.
"""
