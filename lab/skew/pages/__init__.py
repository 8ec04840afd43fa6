"""The matrix as pages and reports."""
