"""What every namespace has: a service account named default, and the authority to trust the API server by.

`objects` has what is written; `shell` has the two controllers.

Source: kube-controller-manager 1.36, serviceaccount and root-ca-certificate-publisher controllers.
"""
