"""An OpenAPI v2 document in protobuf, as kubectl before 1.27 and client-go request it.

The messages are gnostic's, in proto/gnostic. Vendor extensions (x-...) and other values without a message of
their own are YAML there, and JSON is YAML.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from nominee.pb.gnostic.openapiv2 import openapiv2_pb2 as v2

MEDIA_TYPE = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
ACCEPTED = frozenset({MEDIA_TYPE, "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"})

Json = Mapping[str, Any]


def encode(document: Json) -> bytes:
    """Return a document, which is plain data, as bytes."""
    info = document["info"]
    paths = [v2.NamedPathItem(name=path, value=_path_item(item)) for path, item in document["paths"].items()]
    return v2.Document(
        swagger=document["swagger"],
        info=v2.Info(title=info["title"], version=info["version"]),
        paths=v2.Paths(path=paths),
        definitions=v2.Definitions(additional_properties=_schemas(document["definitions"])),
        vendor_extension=_extensions(document),
    ).SerializeToString()


def _path_item(item: Json) -> v2.PathItem:
    message = v2.PathItem(vendor_extension=_extensions(item))
    for verb in ("get", "put", "post", "delete", "patch"):
        if verb in item:
            getattr(message, verb).CopyFrom(_operation(item[verb]))
    return message


def _operation(operation: Json) -> v2.Operation:
    responses = [
        v2.NamedResponseValue(name=code, value=v2.ResponseValue(response=_response(response)))
        for code, response in operation["responses"].items()
    ]
    return v2.Operation(
        description=operation.get("description"),
        operation_id=operation.get("operationId"),
        produces=operation.get("produces"),
        consumes=operation.get("consumes"),
        parameters=[_query_parameter(parameter) for parameter in operation.get("parameters", ())],
        responses=v2.Responses(response_code=responses),
        vendor_extension=_extensions(operation),
    )


def _query_parameter(parameter: Json) -> v2.ParametersItem:
    """Return a parameter of the query; the document has no others."""
    query = v2.QueryParameterSubSchema(
        **{"in": parameter["in"]},
        description=parameter.get("description"),
        name=parameter["name"],
        type=parameter.get("type"),
        unique_items=parameter.get("uniqueItems"),
        vendor_extension=_extensions(parameter),
    )
    return v2.ParametersItem(
        parameter=v2.Parameter(non_body_parameter=v2.NonBodyParameter(query_parameter_sub_schema=query))
    )


def _response(response: Json) -> v2.Response:
    schema = response.get("schema")
    return v2.Response(
        description=response.get("description"),
        schema=None if schema is None else v2.SchemaItem(schema=_schema(schema)),
        vendor_extension=_extensions(response),
    )


def _schema(schema: Json) -> v2.Schema:
    message = v2.Schema(
        ref=schema.get("$ref"),
        format=schema.get("format"),
        description=schema.get("description"),
        required=schema.get("required"),
        enum=[_any(value) for value in schema.get("enum", ())],
        vendor_extension=_extensions(schema),
    )
    if "default" in schema:
        message.default.CopyFrom(_any(schema["default"]))
    if "additionalProperties" in schema:
        message.additional_properties.schema.CopyFrom(_schema(schema["additionalProperties"]))
    if "type" in schema:
        message.type.value.append(schema["type"])
    if "items" in schema:
        message.items.schema.append(_schema(schema["items"]))
    if "properties" in schema:
        message.properties.additional_properties.extend(_schemas(schema["properties"]))
    return message


def _schemas(schemas: Mapping[str, Json]) -> Iterator[v2.NamedSchema]:
    return (v2.NamedSchema(name=name, value=_schema(schema)) for name, schema in schemas.items())


def _extensions(value: Json) -> Iterator[v2.NamedAny]:
    return (v2.NamedAny(name=name, value=_any(each)) for name, each in value.items() if name.startswith("x-"))


def _any(value: object) -> v2.Any:
    return v2.Any(yaml=json.dumps(value, separators=(",", ":"), ensure_ascii=False) + "\n")
