"""The scheduler's picture of the cluster: cache, snapshot and the columns that plugins compute over."""
