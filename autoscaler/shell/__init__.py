"""I/O: the executor of orders, the process, the API server (`cluster`) and the cloud (`provider`)."""
