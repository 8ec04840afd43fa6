"""Steps that read the cluster and build its snapshot."""
