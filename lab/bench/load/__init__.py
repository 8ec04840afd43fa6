"""The benchmark's load: objects, workloads, creators and changers."""
