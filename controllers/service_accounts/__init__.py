"""Default objects of every namespace: the default service account, and the API server's authority.

`objects` has what is written; `shell` has the two controllers.

Source: kube-controller-manager 1.36, serviceaccount and root-ca-certificate-publisher controllers.
"""
