"""Reading cache watches: the next change, and a watch that goes on from its last offset whatever happens to the broker."""

from __future__ import annotations

import time

from suite.checks import Mismatch, equal, true
from suite.history import Change

PATIENCE = 15.0  # seconds until the next change must have come, or a watch must have been taken up again
QUIET = 0.25  # seconds without a change that count as the end
POLL = 0.25  # seconds of one wait for a change
GRACE = 0.5  # seconds for a watch to end by itself once its broker was started again


async def next_change(handle, what: str):
    """The next item of a watch, which must be a change."""
    item = await handle.recv(timeout=PATIENCE)
    if item is None:
        raise Mismatch(f"{what}: no change for {PATIENCE:.0f} s")
    if not hasattr(item, "expires_at_millis"):
        raise Mismatch(f"{what}: {item!r}, want a change")
    return item


async def expect_quiet(handle, what: str) -> None:
    """Nothing more may come."""
    item = await handle.recv(timeout=QUIET)
    if item is not None:
        raise Mismatch(f"{what}: one item too many: {item!r}")


class Follower:
    """Collects every change that matches one filter, by watching again from where it was whenever its watch ends.

    broken() says that another job failed, so that a follower does not wait for what will not come. started() says when the
    broker was started, by the monotonic clock: this client notices only after some seconds that a connection on which it
    merely listens is dead, and a follower watches again before that.
    """

    def __init__(self, stage, client, cache: str, watched, name: str, broken=lambda: False, started=lambda: 0.0):
        self.name, self.cache = name, cache
        self.keys: list = []  # of the caller's
        self.changes: list[tuple[str, Change]] = []  # key and change
        self.puts = 0  # how many of them are values
        self.expected = 0  # how many values its writers know of; writers in threads may lose count, downwards
        self.watches = 0  # how often it watched
        self.lags = 0  # how often the broker said that it was too slow
        self.first = 0  # the offset it began at
        self._stage, self._client, self._watched, self._broken = stage, client, watched, broken
        self._started, self._since = started, 0.0
        self._next = 0  # first offset it has not handled
        self._handle = None

    def once_more(self, client) -> Follower:
        """Another follower of the same, through another client."""
        return Follower(self._stage, client, self.cache, self._watched, f"another of {self.name}", self._broken)

    async def begin(self, start: int | None = None) -> None:
        """Watch what is written from now on, or from an offset."""
        self._handle = await self._watch(start)
        self.first = self._next = self._handle.resume_offset if start is None else start

    async def until(self, last) -> None:
        """Collect changes until last(key, change) says that one was the last."""
        waited = time.monotonic()
        while True:
            item = await self._receive()
            if item is None:
                true(not self._broken(), f"{self.name}: another job failed")
                if time.monotonic() - waited > PATIENCE:
                    raise Mismatch(f"{self.name} stands at offset {self._next} for {PATIENCE:.0f} s")
                continue
            waited = time.monotonic()
            if isinstance(item, self._stage.felix.CacheWatchLagged):
                true(item.resume_from >= self._next, f"{self.name}: {item!r}, next is {self._next}")
                self.lags += 1
                self._next = item.resume_from
                await self._again()
                continue
            if self._take(item, last):
                return

    async def close(self) -> None:
        """End the watch."""
        await self._handle.close()

    def _take(self, item, last) -> bool:
        true(isinstance(item, self._stage.felix.CacheChange), f"{self.name}: {item!r}, want a change")
        true(item.offset >= self._next, f"{self.name}: offset {item.offset} again, next is {self._next}: {item!r}")
        change = Change(item.offset, item.value, item.expires_at_millis)
        self._next = item.offset + 1
        self.changes.append((item.key, change))
        self.puts += change.value is not None
        return last(item.key, change)

    async def _receive(self):
        """The next item, or None when none came for a while; a watch that ended is taken up again."""
        felix, began = self._stage.felix, time.monotonic()
        try:
            item = await self._handle.recv(timeout=POLL)
        except (felix.ConnectionError, felix.ShardUnavailableError):
            item = None
        else:
            if item is not None:
                return item
            if time.monotonic() - began >= POLL and not self._since < self._started() < began - GRACE:
                return None
        await self._again()
        return item

    async def _again(self) -> None:
        """Watch from the first offset that was not handled, as soon as there is a broker."""
        felix, deadline = self._stage.felix, time.monotonic() + PATIENCE
        while True:
            try:
                self._handle = await self._watch(self._next)
                break
            except (felix.ConnectionError, felix.ShardUnavailableError) as error:
                if time.monotonic() >= deadline or self._broken():
                    raise Mismatch(f"{self.name}: no watch for {PATIENCE:.0f} s: {error}") from error
            await self._stage.surface.sleep(0.02)
        equal(self._handle.resnapshot, False, f"{self.name}: a new snapshot although nothing was compacted")

    async def _watch(self, start: int | None):
        self.watches += 1
        self._since, stage = time.monotonic(), self._stage
        return await self._client.watch_cache(stage.tenant, stage.namespace, self.cache, self._watched, start=start)
