"""Which pods must stay: what filter plug-ins, the arbitrator and the round compare. Pure.

`lasting_checks` says what does not pass by itself, `limits` what does once other moves are done,
`safeguards` what holds for every profile, `chain` asks all filters of a profile.
"""
