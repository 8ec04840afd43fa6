"""OpenAPI v3 by group and version (and v2), from Kubernetes' own schemas.

Nothing is read before the first request. Then a release's definitions are read (1.8 MB, 15 ms), the documents
of the served kinds are built and kept as bytes, and the definitions are dropped.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from functools import cache
from typing import Any

from nominee.apiserver.chain import problems
from nominee.apiserver.fronts.rest.discovery import groups as discovery
from nominee.apiserver.fronts.rest.discovery import openapi_protobuf
from nominee.apiserver.fronts.rest.http.media import JSON, accepted_media_types
from nominee.apiserver.fronts.rest.http.messages import Answer, Request
from nominee.apiserver.schema import releases
from nominee.machinery.api import kinds
from nominee.machinery.api.kinds import AnyKind
from nominee.machinery.features.gates import Version

_REFERENCE = "#/$defs/"
_DELETE_OPTIONS = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"
_WRITE_PARAMETERS = ("dryRun", "fieldManager", "fieldValidation")


def answer(request: Request, version: Version) -> Answer | None:
    """Return /openapi/v3, /openapi/v3/api/v1, /openapi/v3/apis/GROUP/VERSION or /openapi/v2, else None."""
    found = _known_version(version)
    path = request.path.rstrip("/")
    if path == "/openapi/v3":
        return _tagged(request, _index(found))
    if path == "/openapi/v2":
        return _v2(request, found)
    document = _documents(found).get(path.removeprefix("/openapi/v3/"))
    return None if document is None else _tagged(request, document)


def _v2(request: Request, version: Version) -> Answer:
    """Return OpenAPI v2 in the preferred form: JSON, or gnostic's protobuf."""
    for name in accepted_media_types(request.header("accept")):
        if name in openapi_protobuf.ACCEPTED:
            return _tagged(request, _whole_in_protobuf(version), openapi_protobuf.MEDIA_TYPE)
        if name in (JSON, "*/*", "application/*"):
            return _tagged(request, _whole(version))
    raise problems.not_acceptable(f"{JSON}, {openapi_protobuf.MEDIA_TYPE}")


def _tagged(request: Request, body: bytes, form: str = JSON) -> Answer:
    etag = f'"{hashlib.sha256(body).hexdigest().upper()}"'
    headers = {"etag": etag, "vary": "Accept"} if form != JSON else {"etag": etag}
    if request.header("if-none-match") == etag:
        return Answer(b"", 304, form, headers=headers)
    return Answer(body, 200, form, headers=headers)


def _known_version(version: Version) -> Version:
    return version if version in releases.versions() else releases.newest()


def _definitions(version: Version) -> dict[str, Any]:
    found = releases.definitions(version)
    if found is None:
        raise problems.not_served()
    return found


@cache
def _index(version: Version) -> bytes:
    paths = {}
    for path, document in _documents(version).items():
        digest = hashlib.sha512(document).hexdigest().upper()
        paths[path] = {"serverRelativeURL": f"/openapi/v3/{path}?hash={digest}"}
    return json.dumps({"paths": paths}, separators=(",", ":")).encode()


@cache
def _documents(version: Version) -> dict[str, bytes]:
    """Return the documents of all groups and versions, by path below /openapi/v3/."""
    definitions = _definitions(version)
    made = {}
    for group, versions in {"": ["v1"], **discovery.groups()}.items():
        for each in versions:
            path = f"apis/{group}/{each}" if group else f"api/{each}"
            document = _document(definitions, group, each, version)
            made[path] = json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()
    return made


def _schema_names(definitions: dict[str, Any]) -> dict[tuple[str, str, str], str]:
    """Return the name of the schema of each group, version and kind."""
    found = {}
    for name, schema in definitions.items():
        for each in schema.get("x-kubernetes-group-version-kind", ()):
            found[each["group"], each["version"], each["kind"]] = name
    return found


def _document(definitions: dict[str, Any], group: str, version: str, release: Version) -> dict[str, Any]:
    names = _schema_names(definitions)
    paths: dict[str, Any] = {}
    roots = [_DELETE_OPTIONS]
    for kind in kinds.KINDS:
        if (kind.group, kind.version) != (group, version):
            continue
        schema = names.get((group, version, kind.kind))
        if schema is None:
            continue
        listed = names.get((group, version, f"{kind.kind}List"))
        roots += [schema, *([listed] if listed else [])]
        paths |= _paths(kind, schema, listed or schema)
    for virtual in discovery.VIRTUAL:
        schema = names.get((virtual.group, virtual.version, virtual.kind))
        if (virtual.group, virtual.version) == (group, version) and schema is not None:
            roots.append(schema)
            if "create" in virtual.verbs:
                where = "/namespaces/{namespace}" if virtual.namespaced else ""
                path = f"{_base(group, version)}{where}/{virtual.plural}"
                paths[path] = {"post": _operation("post", group, version, virtual.kind, schema)}
    components = {name: _v3(definitions[name]) for name in _closure(definitions, roots)}
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": f"v{release}.0"},
        "paths": paths,
        "components": {"schemas": components},
    }


def _base(group: str, version: str) -> str:
    return f"/apis/{group}/{version}" if group else f"/api/{version}"


def _paths(kind: AnyKind, schema: str, listed: str) -> dict[str, Any]:
    base = _base(kind.group, kind.version)
    where = "/namespaces/{namespace}" if kind.namespaced else ""
    collection = f"{base}{where}/{kind.plural}"

    def operation(method: str, action: str = "") -> dict[str, Any]:
        answered = listed if action in ("list", "deletecollection") else schema
        return _operation(method, kind.group, kind.version, kind.kind, schema, answered, action)

    verbs = discovery.verbs_of(kind)
    on_all = {
        "get": ("get", "list"),
        "post": ("create", ""),
        "delete": ("deletecollection", "deletecollection"),
    }
    on_one = {"get": "get", "put": "update", "patch": "patch", "delete": "delete"}
    made = {
        collection: {
            method: operation(method, action) for method, (verb, action) in on_all.items() if verb in verbs
        },
        f"{collection}/{{name}}": {
            method: operation(method) for method, verb in on_one.items() if verb in verbs
        },
    }
    if kind.namespaced:
        made[f"{base}/{kind.plural}"] = {"get": operation("get", "list")}
    for name in sorted(kind.subresources - {"binding", "eviction", "proxy", "scale", "token"}):
        item = {each: operation(each) for each in ("get", "put", "patch")}
        made[f"{collection}/{{name}}/{name}"] = item
    return made


def _operation(
    method: str, group: str, version: str, kind: str, schema: str, answered: str = "", action: str = ""
) -> dict[str, Any]:
    reference = {"$ref": f"#/components/schemas/{schema}"}
    answer = {"$ref": f"#/components/schemas/{answered or schema}"}
    made: dict[str, Any] = {
        "responses": {"200": {"description": "OK", "content": {JSON: {"schema": answer}}}},
        "x-kubernetes-action": action or method,
        "x-kubernetes-group-version-kind": {"group": group, "version": version, "kind": kind},
    }
    if method in ("post", "put", "patch"):
        made["parameters"] = [
            {"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": True}}
            for name in _WRITE_PARAMETERS
        ]
    if method in ("post", "put"):
        made["requestBody"] = {"content": {"*/*": {"schema": reference}}, "required": True}
    return made


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        reference = schema.get("$ref")
        if isinstance(reference, str):
            yield reference.removeprefix(_REFERENCE)
        for inner in schema.values():
            yield from _references(inner)
    elif isinstance(schema, list):
        for inner in schema:
            yield from _references(inner)


def _closure(definitions: dict[str, Any], roots: list[str]) -> list[str]:
    """Return the roots and all schemas that they refer to."""
    found: set[str] = set()
    waiting = [root for root in roots if root in definitions]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += [each for each in _references(definitions[name]) if each in definitions]
    return sorted(found)


def _v3(schema: Any, prefix: str = "#/components/schemas/") -> Any:
    """Return a schema in OpenAPI's form: no null types, references to the document's own components."""
    if isinstance(schema, list):
        return [_v3(inner, prefix) for inner in schema]
    if not isinstance(schema, dict):
        return schema
    reference = schema.get("$ref")
    if isinstance(reference, str):
        target = {"$ref": prefix + reference.removeprefix(_REFERENCE)}
        if "description" in schema:
            return {"allOf": [target], "description": schema["description"], "default": {}}
        return target
    made = {}
    for key, value in schema.items():
        if key == "type" and isinstance(value, list):
            made[key] = next(name for name in value if name != "null")
        elif key == "properties":
            made[key] = {name: _v3(inner, prefix) for name, inner in value.items()}
        elif key == "enum" and schema.get("type") == ["string", "null"] and len(value) == 1:
            # The files fix apiVersion and kind; kube-apiserver's documents do not.
            continue
        else:
            made[key] = _v3(value, prefix)
    return made


@cache
def _whole_in_protobuf(version: Version) -> bytes:
    return openapi_protobuf.encode(json.loads(_whole(version)))


@cache
def _whole(version: Version) -> bytes:
    """Return OpenAPI v2, which is one document."""
    definitions = _definitions(version)
    names = _schema_names(definitions)
    roots = [_DELETE_OPTIONS]
    paths: dict[str, Any] = {}
    for kind in kinds.KINDS:
        schema = names.get((kind.group, kind.version, kind.kind))
        if schema is not None:
            listed = names.get((kind.group, kind.version, f"{kind.kind}List"), schema)
            roots += [schema, listed]
            paths |= {path: _v2_item(item) for path, item in _paths(kind, schema, listed).items()}
    made = {
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": f"v{version}.0"},
        "paths": paths,
        "definitions": {
            name: _flat(_v3(definitions[name], "#/definitions/")) for name in _closure(definitions, roots)
        },
    }
    return json.dumps(made, separators=(",", ":"), ensure_ascii=False).encode()


def _v2_item(item: dict[str, Any]) -> dict[str, Any]:
    made = {}
    for method, operation in item.items():
        content = operation["responses"]["200"]["content"][JSON]["schema"]["$ref"]
        schema = {"$ref": content.replace("#/components/schemas/", "#/definitions/")}
        kept = {key: value for key, value in operation.items() if key.startswith("x-")}
        parameters = [
            {"name": each["name"], "in": "query", "type": "string", "uniqueItems": True}
            for each in operation.get("parameters", ())
        ]
        made[method] = {
            "responses": {"200": {"description": "OK", "schema": schema}},
            **({"parameters": parameters} if parameters else {}),
            **kept,
        }
    return made


def _flat(schema: Any) -> Any:
    """Return a schema without `allOf` around references, which v2 does not have."""
    if isinstance(schema, list):
        return [_flat(inner) for inner in schema]
    if not isinstance(schema, dict):
        return schema
    if "allOf" in schema and len(schema["allOf"]) == 1:
        return {**schema["allOf"][0], "description": schema.get("description", "")}
    if "oneOf" in schema:
        # A quantity, a number or a percentage: v2 calls them strings.
        return {"type": "string", **{key: each for key, each in schema.items() if key != "oneOf"}}
    return {key: _flat(value) for key, value in schema.items()}
