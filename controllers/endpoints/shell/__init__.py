"""I/O of endpoints: the Endpoints, EndpointSlice and EndpointSlice mirroring controllers."""
