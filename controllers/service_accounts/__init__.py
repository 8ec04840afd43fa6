"""What every namespace has: a service account named default, and the authority to trust the API server by.

Source: kube-controller-manager 1.36, serviceaccount and root-ca-certificate-publisher controllers.
"""
