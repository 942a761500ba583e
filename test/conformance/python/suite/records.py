"""Publishing and reading back, in the order that was promised."""

from __future__ import annotations

from suite.checks import Mismatch, equal

PATIENCE = 15.0  # seconds until the next record must have come
QUIET = 0.25  # seconds without a record that count as the end
UNREAD = 64  # records a publisher may be ahead of a reader; the client drops beyond 256


def payload(tag: str, number: int) -> bytes:
    """The body of record `number` of the series tag."""
    return b"%s-%06d" % (tag.encode(), number)


async def next_record(handle, what: str):
    """The next event of a subscription, or a Mismatch when none comes."""
    event = await handle.next_event(timeout=PATIENCE)
    if event is None:
        raise Mismatch(f"{what}: no record for {PATIENCE:.0f} s")
    return event


async def expect(stage, handle, stream: str, want, window=None) -> None:
    """Read exactly the payloads of `want`, in order, as events of an ephemeral stream."""
    for index, body in enumerate(want):
        event = await next_record(handle, f"record {index} of {stream}")
        if window is not None:
            await window.give()
        equal(event.payload, body, f"record {index} of {stream}")
        check_event(stage, event, stream)


def check_origin(stage, event, stream: str) -> None:
    """Where an event comes from."""
    equal((event.tenant_id, event.namespace, event.stream), (stage.tenant, stage.namespace, stream), "event origin")


def check_event(stage, event, stream: str) -> None:
    """The rest of an event: where it comes from, and no offsets on an ephemeral stream (mission 273)."""
    check_origin(stage, event, stream)
    equal((event.offset, event.skipped_before), (None, 0), f"offset and skip of an event of ephemeral {stream}")


async def expect_silence(handle, what: str) -> None:
    """Nothing more may come: no duplicate and no record of somebody else."""
    event = await handle.next_event(timeout=QUIET)
    if event is not None:
        raise Mismatch(f"{what}: one record too many: {event!r} {getattr(event, 'payload', b'')!r}")


async def publish_all(stage, client, stream: str, bodies, **options) -> None:
    """Publish each body with an acknowledgement; an ephemeral stream gives no offset."""
    for body in bodies:
        offset = await client.publish(stage.tenant, stage.namespace, stream, body, **options)
        equal(offset, None, f"offset of a publish to ephemeral {stream}")
