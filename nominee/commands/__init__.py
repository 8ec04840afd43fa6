"""The subcommands: one file each, or each small group. `common` has the options they share."""
