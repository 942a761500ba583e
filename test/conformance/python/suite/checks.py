"""The few assertions scenarios need. Each failure says what was expected, what came, and where."""

from __future__ import annotations

import time


class Mismatch(AssertionError):
    """The broker (or the client in front of it) did something the protocol does not allow."""


def equal(got, want, what: str) -> None:
    """Fail unless got == want. Long byte strings are shortened in the message."""
    if got != want:
        raise Mismatch(f"{what}: got {brief(got)}, want {brief(want)}")


def true(condition, what: str) -> None:
    """Fail with what unless condition holds."""
    if not condition:
        raise Mismatch(what)


async def raises(kind, call, what: str, *, code=None, retry=None, within: float = 5.0):
    """Await call and expect an exception of class kind, at most `within` seconds later.

    code and retry, if given, must equal the attributes the client took from the broker's
    answer. Returns the exception.
    """
    started = time.monotonic()
    try:
        answer = await call
    except kind as error:
        took = time.monotonic() - started
        true(took <= within, f"{what}: refused after {took:.1f} s, want at most {within:.1f} s")
        if code is not None:
            equal(error.code, code, f"{what}: error code of {error!r}")
        if retry is not None:
            equal(error.retry, retry, f"{what}: retry class of {error!r}")
        return error
    except Exception as error:
        raise Mismatch(f"{what}: got {type(error).__name__}({error}), want {kind.__name__}") from error
    raise Mismatch(f"{what}: succeeded with {brief(answer)}, want {kind.__name__}")


def brief(value) -> str:
    """repr(value), cut to a readable length."""
    text = repr(value)
    if len(text) <= 160:
        return text
    return f"{text[:120]}... ({len(text)} characters)"
