"""The conditions that a correct cluster satisfies when nothing changes any more.

`state` is the cluster at rest as data: objects of the API server, and answers of processes. Each other module
has the rules about one subject, functions from a state to findings; `rules` is their table. Only
`observation` does I/O: it reads the state again until no rule has a finding, or the time is over.
"""
