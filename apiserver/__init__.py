"""The API server: Kubernetes' API over etcd, by gRPC and by REST.

A request passes a front (`fronts`), access and flow control, the registry with admission and a kind's rules,
and storage. docs/architecture.md has the layers.
"""
