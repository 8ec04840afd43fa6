"""Filters and scores on a node's own fields: name, labels, taints, ports, images."""
