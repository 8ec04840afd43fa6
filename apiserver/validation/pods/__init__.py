"""The parts of a pod's spec, for pods and for templates of pods in workloads.

Start reading at `spec` and `templates`; the rules of pods alone are in `nominee.apiserver.kinds.core.pods`.
"""
