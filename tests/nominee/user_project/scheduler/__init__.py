"""The project's own package, with a name that Nominee's folders have, too."""

OWNER = "the project"
