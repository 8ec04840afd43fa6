"""The gRPC front: proto/nominee_api/v1/api.proto over the request chain. Start at `request`."""
