"""Controller revisions: the pod templates that a StatefulSet or a DaemonSet had.

Start with `history`: the revision of a template, which revision comes next, and which are deleted.

Source: kube-controller-manager 1.36, pkg/controller/history.
"""
