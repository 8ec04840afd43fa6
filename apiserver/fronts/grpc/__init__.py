"""The gRPC front: proto/nominee_api/v1/api.proto over the registry. Start at `front`."""
