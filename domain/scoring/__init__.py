"""The score plug-ins of kube-scheduler as pure functions over columns of node rows.

`releases` says what differs between minor versions, `profile` reads a KubeSchedulerConfiguration,
`pod` reads what a pod asks of the plug-ins, `columns` is what the plug-ins read of nodes, `indexes`
keeps that up to date as nodes and pods come and go, `totals` computes the plug-ins and their sum,
`eligibility` says why a total cannot be computed here, `explanation` shows how it came about.
Plug-ins that score every node alike for an eligible pod are left out of the total.
"""
