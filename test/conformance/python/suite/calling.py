"""One caller of a cache that notes what it did and what it was told, for suite.history."""

from __future__ import annotations

import time

from suite.checks import true
from suite.history import Operation, Outcome

CERTAIN = ("retry", "retry_after", "redirect")  # retry classes with which a broker says that nothing happened

# What a caller does, in parts of a hundred; the rest are gets. Lives of `brief` puts end during the run.
PUT, BRIEF, LONG, DELETE = 45, 15, 10, 15
BRIEF_SECONDS = (0.02, 0.1, 0.5, 2.0)
LONG_SECONDS = 300.0


class Key:
    """One key, what was done to it, and the watches that see it. One caller uses it."""

    def __init__(self, cache: str, name: str, shard: int):
        self.cache, self.name, self.shard = cache, name, shard
        self.operations: list[Operation] = []
        self.followers: list = []


class Sum:
    """What a counter may hold: more than one sum after an add of unknown outcome."""

    def __init__(self):
        self.possible = {0}

    def added(self, delta: int, answer: int) -> None:
        """An add was answered with the sum."""
        self.possible = {each + delta for each in self.possible}
        self.read(answer)

    def unknown(self, delta: int) -> None:
        """An add may have happened, once."""
        self.possible |= {each + delta for each in self.possible}

    def read(self, answer: int | None) -> None:
        """The counter was read; never written is as good as 0 here."""
        true((answer or 0) in self.possible, f"a counter holds {answer}, want one of {sorted(self.possible)}")
        self.possible = {answer or 0}


class Caller:
    """Makes random calls through one client."""

    def __init__(self, stage, client, rng):
        self._stage, self._client, self._rng = stage, client, rng

    async def act(self, key: Key, value: bytes) -> Outcome:
        """One random operation on key; a put writes value, which nobody else writes."""
        dice = self._rng.randrange(100)
        for share, ttl in ((PUT, None), (BRIEF, self._rng.choice(BRIEF_SECONDS)), (LONG, LONG_SECONDS)):
            if dice < share:
                return await self.put(key, value, ttl)
            dice -= share
        return await (self.delete(key) if dice < DELETE else self.get(key))

    async def put(self, key: Key, value: bytes, ttl: float | None = None) -> Outcome:
        """A put, which each watch of the key is to see."""
        call = self._client.cache_put
        options = {} if ttl is None else {"ttl": ttl}
        outcome = await self._note(key, "put", value, ttl, lambda scope: call(*scope, value, **options))
        if outcome is Outcome.DONE:
            for follower in key.followers:
                follower.expected += 1
        return outcome

    async def delete(self, key: Key) -> Outcome:
        """A delete, and what it removed."""
        return await self._note(key, "delete", None, None, lambda scope: self._client.cache_delete(*scope))

    async def get(self, key: Key) -> Outcome:
        """A get, and what it saw."""
        return await self._note(key, "get", None, None, lambda scope: self._client.cache_get(*scope))

    async def count(self, cache: str, name: str, total: Sum) -> Outcome:
        """Add to a counter, or read it."""
        stage, felix = self._stage, self._stage.felix
        scope = (stage.tenant, stage.namespace, cache, name)
        delta = self._rng.randrange(-5, 20)
        try:
            if self._rng.random() < 0.2:
                delta = 0
                total.read(await self._client.counter_get(*scope))
            else:
                total.added(delta, await self._client.counter_add(*scope, delta))
            return Outcome.DONE
        except felix.FelixError as error:
            if refused(felix, error):
                return Outcome.REFUSED
            total.unknown(delta)
            return Outcome.UNKNOWN

    async def _note(self, key: Key, kind: str, value, ttl, call) -> Outcome:
        stage, felix = self._stage, self._stage.felix
        sent = time.time()
        try:
            answer = await call((stage.tenant, stage.namespace, key.cache, key.name))
            outcome = Outcome.DONE
        except felix.FelixError as error:
            answer, outcome = None, Outcome.REFUSED if refused(felix, error) else Outcome.UNKNOWN
        told = value if kind == "put" else answer
        key.operations.append(Operation(kind, outcome, sent, time.time(), told, ttl))
        return outcome


def refused(felix, error) -> bool:
    """Whether nothing happened for certain. Errors a restart does not explain are raised again."""
    if error.retry in CERTAIN:
        return True
    if isinstance(error, (felix.ConnectionError, felix.OutcomeUnknownError)):
        return False
    raise error
