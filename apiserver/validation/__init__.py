"""Validation rules that kinds share, with kube-apiserver 1.36's texts and field paths.

Pure functions from messages to lists of causes. Start at `field` (the kinds of errors) and `objects.metadata` (what
holds for every kind); `pods` has the parts of a pod's spec. These are the rules that several kinds share;
those of one kind are beside its strategy, in `nominee.apiserver.kinds`.
"""
