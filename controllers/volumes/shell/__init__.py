"""I/O of volumes: the binder, the provisioner and the protection of volumes and claims."""
