"""The two surfaces of the client, behind one shape, so that each scenario is written once.

A scenario is a coroutine. On the asyncio surface it runs on an event loop. On the synchronous surface there is no
loop: every call blocks inside the coroutine, which therefore never suspends, and parallel jobs are threads.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
import time

from suite.window import TaskWindow, ThreadWindow


def drive(coroutine):
    """Run a coroutine that never suspends and return its result."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    coroutine.close()
    raise RuntimeError("a coroutine of the synchronous surface waited for an event loop")


class Blocking:
    """Wraps an object of the synchronous surface so that its methods can be awaited.

    Attributes that are no methods are passed through; answers that have methods of their own (clients,
    subscriptions) come back wrapped.
    """

    def __init__(self, inner, wrapped: tuple[type, ...]):
        self._inner = inner
        self._wrapped = wrapped

    def __getattr__(self, name: str):
        value = getattr(self._inner, name)
        if not callable(value):
            return value

        async def call(*args, **options):
            answer = value(*args, **options)
            if isinstance(answer, self._wrapped):
                return Blocking(answer, self._wrapped)
            return answer

        return call


class SyncSurface:
    """felix.Client, called from plain threads."""

    name = "sync"

    def __init__(self, felix):
        self._felix = felix
        self._wrapped = (
            felix.Client,
            felix.SubscriptionHandle,
            felix.ShardedSubscriptionHandle,
            felix.CacheWatchHandle,
        )

    def run(self, coroutine):
        """Run a whole round."""
        return drive(coroutine)

    async def connect(self, addr: str, **options):
        """Build a client."""
        return Blocking(self._felix.Client(addr, **options), self._wrapped)

    def provider(self, token: str):
        """A token provider of the kind this surface takes."""
        return lambda: token

    def window(self, limit: int) -> ThreadWindow:
        """See suite.window."""
        return ThreadWindow(limit)

    async def sleep(self, seconds: float) -> None:
        """Let wall-clock time pass, for what depends on it (TTLs)."""
        time.sleep(seconds)

    async def aside(self, call):
        """Make a blocking call that is none of the client's; the other jobs go on meanwhile."""
        return call()

    async def gather(self, *jobs):
        """Run each job (a function that returns a coroutine) in a thread of its own, all at once.

        Returns their results in order; the first failure is raised once all have ended.
        """
        results = [None] * len(jobs)
        failures: list[BaseException] = []
        start = threading.Barrier(len(jobs))

        def work(index: int) -> None:
            try:
                start.wait()
                results[index] = drive(jobs[index]())
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=(index,), daemon=True) for index in range(len(jobs))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]
        return results


class AsyncSurface:
    """felix.AsyncClient on one event loop."""

    name = "async"

    def __init__(self, felix):
        self._felix = felix

    def run(self, coroutine):
        """Run a whole round."""
        return asyncio.run(coroutine)

    async def connect(self, addr: str, **options):
        """Build a client."""
        return await self._felix.AsyncClient.connect(addr, **options)

    def provider(self, token: str):
        """A token provider of the kind this surface takes."""

        async def fetch() -> str:
            return token

        return fetch

    def window(self, limit: int) -> TaskWindow:
        """See suite.window."""
        return TaskWindow(limit)

    async def sleep(self, seconds: float) -> None:
        """Let wall-clock time pass, for what depends on it (TTLs)."""
        await asyncio.sleep(seconds)

    async def aside(self, call):
        """Make a blocking call that is none of the client's; the other jobs go on meanwhile."""
        return await asyncio.to_thread(call)

    async def gather(self, *jobs):
        """Run each job (a function that returns a coroutine) as a task, all at once.

        Returns their results in order; the first failure is raised once all have ended.
        """
        failures: list[BaseException] = []

        async def work(job):
            try:
                return await job()
            except BaseException as error:
                failures.append(error)

        results = await asyncio.gather(*(work(job) for job in jobs))
        if failures:
            raise failures[0]
        return list(results)


async def closed(handle) -> bool:
    """Whether a subscription is closed; a plain attribute on one surface, awaitable on the other."""
    value = handle.closed
    return await value if inspect.isawaitable(value) else value
