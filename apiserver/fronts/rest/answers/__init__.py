"""Answers: documents, tables, watches and errors."""
