"""Runtime hooks by stage of a container's life: one function that every way of delivery calls.

`subject` is what a hook looks at, `adjustment` what it answers and the function itself,
`reconciliation` the edits of pods that exist already. Pure.
"""
