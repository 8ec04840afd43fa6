"""The subcommands: one file for each, or for a small group. `common` has the options that they share."""
