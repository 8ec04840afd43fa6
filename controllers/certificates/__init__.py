"""CertificateSigningRequests: approved for kubelets, signed by the cluster's authority, deleted in the end.

Start with `requests`, which parses and judges a request; `signing` makes the certificate, `cleaning` decides
which requests are old. `shell` has the approver, the signer and the cleaner.

Source: kube-controller-manager 1.36, pkg/controller/certificates.
"""
