"""The merge of applied objects, and its conflicts."""
