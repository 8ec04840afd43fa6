"""Server-side apply and managedFields: the owners of fields, as functions of documents.

`manager.py` is what the registry calls (create, update, apply). Below it: `entries.py` (managedFields as
data), `merge/merge_engine.py` (the owners after a change), `fields/typed.py` and its walkers (a document and its type),
`fields/schema.py` (types from the wire table), `fields/field_set.py` (sets of paths, FieldsV1). All pure; imported on first
use.

Source: k8s.io/apimachinery/pkg/util/managedfields and sigs.k8s.io/structured-merge-diff v6, Kubernetes 1.36.
"""
