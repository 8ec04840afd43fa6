"""The request chain that both fronts call.

Start at `chain` (the order of the filters), then `request` (what a front decodes and encodes), `filters` and
`handlers` (the table from verb and subresource to handler).
"""
