"""How far publishers may run ahead of a reader.

The client keeps 256 undelivered events per subscription and then drops new ones. A test that publishes without
looking would lose records in the client and blame the broker, so each publisher reserves a place first and each
reader gives it back. A reader that stands still for PATIENCE seconds has lost records for good.
"""

from __future__ import annotations

import asyncio
import threading

from suite.checks import Mismatch

PATIENCE = 15.0  # seconds


class _Count:
    """Places taken and given back, never more than limit apart."""

    def __init__(self, limit: int):
        self.limit = limit
        self.taken = 0
        self.given = 0

    def full(self) -> bool:
        return self.taken - self.given >= self.limit

    def stuck(self) -> Mismatch:
        return Mismatch(
            f"reader stands at {self.given} of {self.taken} published records for {PATIENCE:.0f} s: records were lost"
        )


class ThreadWindow:
    """A window shared by threads. Its methods are coroutines that never suspend."""

    def __init__(self, limit: int):
        self._count = _Count(limit)
        self._moved = threading.Condition()

    async def take(self) -> None:
        """Reserve the place of one record, waiting for the reader if need be."""
        count = self._count
        with self._moved:
            while count.full():
                before = count.given
                self._moved.wait(PATIENCE)
                if count.given == before:
                    raise count.stuck()
            count.taken += 1

    async def give(self) -> None:
        """The reader has got one record."""
        with self._moved:
            self._count.given += 1
            self._moved.notify_all()


class TaskWindow:
    """A window shared by the tasks of one event loop."""

    def __init__(self, limit: int):
        self._count = _Count(limit)
        self._moved = asyncio.Condition()

    async def take(self) -> None:
        """Reserve the place of one record, waiting for the reader if need be."""
        count = self._count
        async with self._moved:
            while count.full():
                before = count.given
                try:
                    await asyncio.wait_for(self._moved.wait(), PATIENCE)
                except asyncio.TimeoutError:
                    pass
                if count.given == before:
                    raise count.stuck()
            count.taken += 1

    async def give(self) -> None:
        """The reader has got one record."""
        async with self._moved:
            self._count.given += 1
            self._moved.notify_all()
