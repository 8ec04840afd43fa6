"""JSON and YAML documents as Go reads them, and the schemas of Kubernetes' releases.

`documents` parses, `go_errors` words the errors of Go's decoders, `version_fields` drops the fields that an
emulated version does not know, `descriptions` reads the descriptions of fields.
"""
