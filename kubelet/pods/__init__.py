"""What a pod worker does with one pod. Pure."""
