"""The two protocols of the API server: `grpc` (nominee.api.v1.API) and `rest` (Kubernetes' HTTP API).

A front decodes a request, calls the request chain, and encodes the response. It has no rules of its own.
"""
