"""What makes an object invalid, worded and located as kube-apiserver 1.36 words and locates it.

Pure functions from messages to lists of `Cause`. Start at `field` (the kinds of errors) and `metadata` (what
holds for every kind); then a file a kind, `pod_spec` and its helpers being the largest.
"""
