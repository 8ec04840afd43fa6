"""Discovery: groups, OpenAPI, versions and OpenID."""
