"""JSON and YAML documents as Go reads them, and the schemas of Kubernetes' releases.

`documents.py` parses, `go_errors.py` words the errors of Go's decoders, `version_fields.py` drops fields that
the emulated version does not have, `stored_fields.py` from stored objects, `descriptions.py` reads the
descriptions of fields.
"""
