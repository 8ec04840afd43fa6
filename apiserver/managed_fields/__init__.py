"""Who manages which field: server-side apply and managedFields, as functions of documents.

`manager` is what the registry calls (create, update, apply). Below it: `entries` (managedFields as data),
`merge_engine` (who owns what after a change), `typed` and its walkers (one document and its type), `schema`
(types from the table of messages), `field_set` (sets of paths, FieldsV1). All pure; loaded on first use.
Source: k8s.io/apimachinery/pkg/util/managedfields and sigs.k8s.io/structured-merge-diff v6, Kubernetes 1.36.
"""
