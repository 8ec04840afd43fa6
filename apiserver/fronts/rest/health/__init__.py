"""Health of the API server and of the components that it knows."""
