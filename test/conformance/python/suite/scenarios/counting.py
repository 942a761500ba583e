"""Counters: sums, signs, what was never written, bounds, many callers."""

from __future__ import annotations

from suite.checks import equal, raises, true
from suite.following import expect_quiet
from suite.runner import scenario
from suite.scenarios.caching import CALLERS, Cache
from suite.scenarios.watching import watcher

MOST = 2**63 - 1  # a sum is a signed number of 64 bits


class Counters:
    """The counters of one cache seen through one client."""

    def __init__(self, stage, client, name: str):
        self._scope = (stage.tenant, stage.namespace, name)
        self._client = client

    async def add(self, key: str, delta: int) -> int:
        return await self._client.counter_add(*self._scope, key, delta)

    async def get(self, key: str):
        return await self._client.counter_get(*self._scope, key)


@scenario()
async def counters(stage, client):
    """An add answers with the sum; never written is not 0; a counter and a value of one name do not meet."""
    name = stage.cache(4)
    sums, cache = Counters(stage, client, name), Cache(stage, client, name)
    handle = await watcher(stage, client, name)(key="visits")
    for key in ("visits", "cl\u00e9", "x" * 200):
        equal(await sums.get(key), None, f"counter {key!r} that was never written")
        total = 0
        for delta in (1, 41, -50, 0, 8, -7):
            total += delta
            equal(await sums.add(key, delta), total, f"counter {key!r} after {delta}")
            equal(await sums.get(key), total, f"counter {key!r} read after {delta}")
    equal(await sums.add("visits", 7), 0, "a sum of nothing")
    equal(await sums.get("visits"), 0, "a sum of nothing, read")
    equal(await cache.get("visits"), None, "the value of a counter's name")
    await expect_quiet(handle, "a watch beside a counter")
    await cache.put("visits", b"value")
    equal((await sums.get("visits"), await cache.delete("visits")), (0, b"value"), "a counter and a value of one name")
    equal(await sums.get("visits"), 0, "a counter after a delete of the value")


@scenario()
async def counters_do_not_wrap(stage, client):
    """An add that would leave 64 bits is refused and changes nothing."""
    sums, felix = Counters(stage, client, stage.cache(1)), stage.felix
    equal(await sums.add("up", MOST), MOST, "the largest sum")
    equal(await sums.add("down", -MOST - 1), -MOST - 1, "the smallest sum")
    for key, delta, total in (("up", 1, MOST), ("up", MOST, MOST), ("down", -1, -MOST - 1), ("down", -MOST, -MOST - 1)):
        await raises(felix.FelixError, sums.add(key, delta), f"{delta} on {total}", code="invalid_request", retry="fatal")
        equal(await sums.get(key), total, f"the sum after {delta} was refused")
    equal(await sums.add("up", -MOST), 0, "a large step down")
    for delta in (MOST + 1, -MOST - 2):
        await raises(OverflowError, sums.add("up", delta), f"{delta}, which is no signed 64-bit number")


@scenario()
async def counters_many_callers(stage, client):
    """64 callers at once on one counter and on their own: no add is lost, none counts twice, each sum is answered once."""
    sums, each = Counters(stage, client, stage.cache(4)), 20

    def caller(number):
        async def work():
            answers = []
            for turn in range(each):
                answers.append(await sums.add("shared", 1))
                equal(await sums.add(f"own/{number}", turn), turn * (turn + 1) // 2, f"counter own/{number}")
            return answers

        return work

    answers = await stage.surface.gather(*(caller(number) for number in range(CALLERS)))
    equal(sorted(sum(answers, [])), list(range(1, CALLERS * each + 1)), "sums that were answered")
    for one in answers:
        true(one == sorted(one), "the sums of one caller ascend")
    equal(await sums.get("shared"), CALLERS * each, "the shared counter")


@scenario()
async def counters_that_are_refused(stage, client):
    """Unknown caches, other namespaces and caches in memory: typed refusals, and more calls than streams work afterwards."""
    felix, name = stage.felix, stage.cache(1)
    sums, unknown = Counters(stage, client, name), Counters(stage, client, name + "-none")
    memory = Counters(stage, client, stage.cache(1, in_memory=True))
    for _ in range(2):
        for call in (unknown.add("k", 1), unknown.get("k")):
            await raises(felix.NotFoundError, call, "a counter of an unknown cache", code="not_found", retry="retry_after")
        for call in (memory.add("k", 1), memory.get("k")):
            await raises(felix.FelixError, call, "a counter in memory", code="invalid_request", retry="fatal")
        call = client.counter_add(stage.tenant, "restricted", name, "k", 1)
        await raises(felix.AuthError, call, "a counter of another namespace", code="forbidden", retry="fatal")
        for number in range(40):
            await sums.add("k", 1)
    equal(await sums.get("k"), 80, "adds after refusals")
