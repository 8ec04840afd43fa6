"""Security contexts, sysctls and Windows options of a pod."""
