"""Admission plugins that refuse users without a permission."""
