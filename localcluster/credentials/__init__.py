"""Certificates, tokens and identities of a cluster's processes and users: `pki` creates the files of
D/pki.
"""
