"""The standard commands, those of `make chaos`, with each mutation: what do they find?

`commands` reads them from the Makefile, `job` runs one with one mutation, `results` keeps what was found,
`schedule` says what runs next, `table` prints it. Run it by `make mutations`.
"""
