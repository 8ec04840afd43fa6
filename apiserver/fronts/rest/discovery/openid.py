"""OpenID discovery, to verify service accounts' tokens: the issuer's configuration and its public key.

Source: kube-apiserver 1.36, pkg/routes/openidmetadata.go, pkg/serviceaccount/openidmetadata.go.
"""

from __future__ import annotations

from nominee.apiserver.access.service_accounts import ISSUER, ServiceAccountTokens
from nominee.apiserver.fronts.rest.http import text
from nominee.apiserver.fronts.rest.http.messages import Answer

KEYS_PATH = "/openid/v1/jwks"
_CACHED = {"cache-control": "public, max-age=3600"}


def configuration(accounts: ServiceAccountTokens, address: str) -> Answer:
    """Return the provider's metadata; `address` is this server's `host:port`."""
    document = {
        "issuer": ISSUER,
        "jwks_uri": f"https://{address}{KEYS_PATH}",
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": [accounts.json_web_key()["alg"]],
    }
    return Answer(text.dump(document).encode(), headers=_CACHED)


def keys(accounts: ServiceAccountTokens) -> Answer:
    """Return the JSON Web Key Set."""
    document = {"keys": [accounts.json_web_key()]}
    return Answer(text.dump(document).encode(), content_type="application/jwk-set+json", headers=_CACHED)
