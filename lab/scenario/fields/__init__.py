"""What the fields of steps and conditions are made of: names, JSON paths, comparisons, options, their checks.

Start with `parser` (the checks that a JSON Schema cannot express) and `fragments` (parts of the schema).
"""
