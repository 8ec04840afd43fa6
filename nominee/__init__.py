"""Nominee: a Kubernetes control plane as real processes, to see, break and measure how its parts agree.

The `nominee` command is here (`cli`, `command_group`, `commands/`), with links to the packages of components,
`machinery`, `simulation`, `localcluster` and `lab`, which lie beside it (docs/architecture.md).
"""
