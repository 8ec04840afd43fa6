"""The `nominee` command: a local cluster of real processes, and the tools to watch and break it.

Start with `command_group` (the commands), `plan` (which processes a cluster has and how they are started) and
`supervisor` (keeps them running). `commands/` holds one file per command or small group of them.
"""
