"""Sets of fields: paths, schemas and typed values."""
