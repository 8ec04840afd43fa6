"""I/O of certificates: approver, signer and cleaner of CertificateSigningRequests."""
