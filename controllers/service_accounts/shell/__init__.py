"""I/O of service accounts: the service account controller and the root certificate publisher."""
