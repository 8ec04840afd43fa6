"""The kinds: the API server's rules for each, in `<group>/<kind>.py` (a package for large ones).

Start reading at `rules` (KindRules: the row of a kind) and `strategy`, then at any kind, for instance
`coordination/leases.py`. `table` has all rows. Rules that several kinds share are in
`nominee.apiserver.validation`. docs/changing.md has the steps for a new field and for a new kind.
"""
