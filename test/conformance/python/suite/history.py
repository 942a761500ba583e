"""Whether the changes of one key, as a log has them, are explained by what one caller did to it and was told.

Pure: no client and no clock. Operations of a key come one after the other, and no value is put twice. What a caller was not
told may have happened or not; what it was told did happen, in this order, and nothing else did.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from suite.checks import Mismatch

MARGIN = 5  # milliseconds between a clock that is read here and the same clock read by the broker


class Outcome(Enum):
    """What became of an operation, as far as its caller knows."""

    DONE = "done"
    REFUSED = "refused"  # the broker said that nothing happened
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Operation:
    """One call. Times are seconds of the wall clock."""

    kind: str  # put, delete or get
    outcome: Outcome
    sent: float
    ended: float
    value: bytes | None = None  # what was put, or what a get or delete answered
    ttl: float | None = None

    def __str__(self) -> str:
        return f"{self.kind} of {self.value!r}, ttl {self.ttl}, {self.outcome.value}, at {self.sent:.3f}"


@dataclass(frozen=True)
class Change:
    """One change of a key as a watch shows it: value is None for a removal."""

    offset: int
    value: bytes | None
    expires_at_millis: int


def explain(key: str, operations, changes) -> None:
    """Raise a Mismatch unless the operations, in their order, explain every change, in its order."""
    walk = _Walk(key, changes)
    for operation in operations:
        if operation.outcome is Outcome.REFUSED:
            continue
        step = {"put": walk.put, "delete": walk.delete, "get": walk.get}[operation.kind]
        step(operation)
    walk.finish()


class _Walk:
    """Where the changes of a key have been explained up to."""

    def __init__(self, key: str, changes):
        self._key = key
        self._changes = list(changes)
        self._next = 0  # first change that is not explained yet
        self._held: Change | None = None  # the put that is in force
        self._doubt = False  # a delete of unknown outcome was sent since
        self._before: bytes | None = None  # what the key held before a put of unknown outcome
        for one, two in zip(self._changes, self._changes[1:]):
            if two.offset <= one.offset:
                raise Mismatch(f"key {key}: a change at offset {two.offset} after one at {one.offset}")

    def put(self, operation: Operation) -> None:
        """A put that was done is the next change; one of unknown outcome may be."""
        at = self._next
        if self._removal_may_come() and self._peek(at) is not None and self._peek(at).value is None:
            at += 1
        change = self._peek(at)
        if change is None or change.value != operation.value:
            if operation.outcome is Outcome.DONE:
                raise self._wrong(operation, f"the next change is {change}")
            return
        self._check_expiry(operation, change)
        unknown = operation.outcome is Outcome.UNKNOWN
        self._before = self._held.value if unknown and self._held is not None else None
        self._next, self._held, self._doubt = at + 1, change, False

    def delete(self, operation: Operation) -> None:
        """A delete that removed something is the next change; one that found nothing is none."""
        if operation.outcome is Outcome.UNKNOWN:
            self._doubt = self._held is not None
            return
        if operation.value is None:
            self._absent(operation)
            return
        self._present(operation)
        change = self._peek(self._next)
        if change is None or change.value is not None:
            raise self._wrong(operation, f"the next change is {change}, want a removal")
        self._next, self._held, self._doubt = self._next + 1, None, False

    def get(self, operation: Operation) -> None:
        """A get sees what is in force."""
        if operation.outcome is Outcome.UNKNOWN:
            return
        if operation.value is None:
            self._absent(operation)
        elif operation.value != self._before:
            self._present(operation)

    def finish(self) -> None:
        """Nothing may be left but the removal of an entry whose time is up."""
        change = self._peek(self._next)
        if change is not None and change.value is None and self._removal_may_come():
            self._next += 1
        if self._next < len(self._changes):
            rest = len(self._changes) - self._next
            raise Mismatch(f"key {self._key}: nobody made {self._peek(self._next)}, nor {rest - 1} changes after it")

    def _present(self, operation: Operation) -> None:
        """The answer is the value in force, and its time was not up."""
        held = self._held
        if held is None or held.value != operation.value:
            raise self._wrong(operation, f"in force was {held}")
        if held.expires_at_millis and held.expires_at_millis + MARGIN < operation.sent * 1000:
            raise self._wrong(operation, f"its time was up: {held}")
        self._doubt = False

    def _absent(self, operation: Operation) -> None:
        """The answer is that there is nothing, and there may have been nothing."""
        held = self._held
        if held is None or self._doubt:
            return
        if not held.expires_at_millis or held.expires_at_millis - MARGIN > operation.ended * 1000:
            raise self._wrong(operation, f"in force was {held}")

    def _check_expiry(self, operation: Operation, change: Change) -> None:
        """The end of a life counts from a moment between sending the put and its answer."""
        if operation.ttl is None:
            low = high = 0
        else:
            low = int((operation.sent + operation.ttl) * 1000) - MARGIN
            high = int((operation.ended + operation.ttl) * 1000) + MARGIN
        if not low <= change.expires_at_millis <= high:
            raise self._wrong(operation, f"it ends at {change.expires_at_millis}, want {low} to {high}")

    def _removal_may_come(self) -> bool:
        return self._held is not None and (self._doubt or self._held.expires_at_millis != 0)

    def _peek(self, at: int) -> Change | None:
        return self._changes[at] if at < len(self._changes) else None

    def _wrong(self, operation: Operation, what: str) -> Mismatch:
        return Mismatch(f"key {self._key}: {operation}: {what}")
