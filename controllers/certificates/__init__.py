"""CertificateSigningRequests: approved for kubelets, signed by the cluster's authority, deleted in the end.

`requests` reads and judges a request, `signing` makes the certificate, `cleaning` says what is old;
`approver`, `signer` and `cleaner` are the shells.

Source: kube-controller-manager 1.36, pkg/controller/certificates.
"""
