"""The client side of the API: the API client, reflectors, informers, credentials and leader election."""
