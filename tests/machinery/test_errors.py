"""Statuses: their words are those of the real API server, and they survive the wire."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import grpc
import grpc.aio
import pytest

from nominee.machinery.api import errors, kinds
from nominee.machinery.api.errors import Cause, GroupKind, StatusError
from tests.support.patience import PATIENCE_SECONDS

POD, PDB = kinds.POD, kinds.POD_DISRUPTION_BUDGET

CASES = [
    (errors.not_found(POD, "a"), 404, "NotFound", 'pods "a" not found'),
    (errors.not_found(PDB, "b"), 404, "NotFound", 'poddisruptionbudgets.policy "b" not found'),
    (errors.already_exists(POD, "a"), 409, "AlreadyExists", 'pods "a" already exists'),
    (
        errors.conflict(POD, "p"),
        409,
        "Conflict",
        'Operation cannot be fulfilled on pods "p": the object has been modified; please apply your changes'
        " to the latest version and try again",
    ),
    (
        errors.forbidden(POD, "pc", "no PriorityClass with name nope was found"),
        403,
        "Forbidden",
        'pods "pc" is forbidden: no PriorityClass with name nope was found',
    ),
    (errors.forbidden(POD, "", "no"), 403, "Forbidden", "pods is forbidden: no"),
    (errors.forbidden(None, "", "no"), 403, "Forbidden", "forbidden: no"),
    (
        errors.too_large_resource_version(99999999, 3081),
        504,
        "Timeout",
        "Timeout: Too large resource version: 99999999, current: 3081",
    ),
    (
        errors.invalid(
            GroupKind("", "Binding"), "p", [Cause("FieldValueRequired", "Required value", "target.name")]
        ),
        422,
        "Invalid",
        'Binding "p" is invalid: target.name: Required value',
    ),
    (errors.internal("boom"), 500, "InternalError", "Internal error occurred: boom"),
]


@pytest.mark.parametrize(("error", "code", "reason", "message"), CASES)
def test_words(error: StatusError, code: int, reason: str, message: str) -> None:
    assert (error.code, error.reason, error.message) == (code, reason, message)


def test_invalid_lists_each_text_once_and_each_cause() -> None:
    causes = [
        Cause("FieldValueInvalid", 'Invalid value: "X": bad', "metadata.name"),
        Cause("FieldValueRequired", "Required value", "spec.containers"),
        Cause("FieldValueRequired", "Required value", "spec.containers"),
    ]
    error = errors.invalid(POD, "X", causes)
    want = 'Pod "X" is invalid: [metadata.name: Invalid value: "X": bad, spec.containers: Required value]'
    assert error.message == want
    assert list(error.causes) == causes
    assert error.details is not None
    assert (error.details.kind, error.details.name) == ("Pod", "X")


def test_no_such_revision_has_a_cause_and_a_wait() -> None:
    error = errors.too_large_resource_version(2, 1)
    assert error.retry_after_seconds == 1
    assert [cause.reason for cause in error.causes] == ["ResourceVersionTooLarge"]


@pytest.mark.parametrize(
    ("test", "yes", "no"),
    [
        (errors.is_not_found, errors.not_found(POD, "a"), errors.gone("x")),
        (errors.is_conflict, errors.conflict(POD, "a"), errors.already_exists(POD, "a")),
        (errors.is_already_exists, errors.already_exists(POD, "a"), errors.conflict(POD, "a")),
        (errors.is_gone, errors.expired("x"), errors.not_found(POD, "a")),
        (errors.is_gone, errors.gone("x"), errors.internal("x")),
        (errors.is_retryable, errors.service_unavailable("x"), errors.bad_request("x")),
        (errors.is_not_found, StatusError(404, "", "x"), ValueError("x")),
    ],
)
def test_tests(test: Callable[[BaseException | None], bool], yes: BaseException, no: BaseException) -> None:
    assert test(yes)
    assert not test(no)
    assert not test(None)


def test_pickles() -> None:
    error = errors.too_many_requests("slow down", 7, causes=[Cause("DisruptionBudget", "needs 1")])
    again = pickle.loads(pickle.dumps(error))
    assert again.to_message() == error.to_message()


async def test_a_status_survives_grpc_whole() -> None:
    """Also one far over the usual 8 KiB of header, if both ends raise the limit."""
    big = errors.invalid(
        POD, "p", [Cause("FieldValueInvalid", f"text {i} é " * 20, f"f[{i}]") for i in range(100)]
    )
    thrown: list[StatusError] = [big, *(case[0] for case in CASES), StatusError(500, "", "no reason")]

    async def fail(request: bytes, context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
        await errors.abort(context, thrown[int(request)])

    options = [("grpc.max_metadata_size", 1 << 20)]
    server = grpc.aio.server(options=options)
    handler: grpc.RpcMethodHandler[bytes, bytes] = grpc.unary_unary_rpc_method_handler(fail)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("t.T", {"Fail": handler}),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}", options=options) as channel:
            call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary("/t.T/Fail")
            for index, error in enumerate(thrown):
                with pytest.raises(grpc.aio.AioRpcError) as caught:
                    await call(str(index).encode(), timeout=PATIENCE_SECONDS)
                assert caught.value.code() == errors.grpc_code(error)
                assert errors.from_server(caught.value)
                assert errors.from_rpc_error(caught.value).to_message() == error.to_message()
    finally:
        await server.stop(None)


async def test_no_server_is_503() -> None:
    async with grpc.aio.insecure_channel("127.0.0.1:1") as channel:
        call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary("/t.T/Fail")
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call(b"", timeout=PATIENCE_SECONDS)
    assert not errors.from_server(caught.value)
    error = errors.from_rpc_error(caught.value)
    assert (error.code, error.reason) == (503, "ServiceUnavailable")
