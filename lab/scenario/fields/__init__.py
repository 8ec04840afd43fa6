"""The parts of the fields of steps and conditions: names, JSON paths, comparisons, options, their checks.

Start with `declared` (fields from which schema and parsing come), `parser` (the checks that a JSON Schema
cannot express) and `fragments` (parts of the schema).
"""
