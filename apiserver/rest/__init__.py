"""Columns of Tables, by kind."""
