"""Kubernetes' own messages: one table (`table.tsv`), and the code and files that are derived from it.

`schema` reads the table; `protos` writes the .proto files under proto/ from it; `codec` turns messages
into Kubernetes JSON and back; `presence` makes their bytes those of a real API server; `envelope` is the
`k8s\\0` wrapping of a stored or sent object.
"""
