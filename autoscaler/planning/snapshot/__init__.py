"""The cluster snapshot: nodes and pods that can be forked, templates and hints."""
