"""What becomes of puts for which there is no memory: a cache in a log refuses and keeps all, one in memory evicts."""

from __future__ import annotations

from suite.checks import equal, raises, true
from suite.runner import scenario
from suite.scenarios.caching import Cache

BUDGET = 1 << 20  # bytes, the smallest that the broker takes for keys of caches in logs
VALUE = b"v" * 2000
MOST = 4 * BUDGET // len(VALUE)  # puts that need four times the budget


@scenario(own_broker=True)
async def cache_that_is_full(stage, client):
    """New keys are refused by type when the memory for keys is used up; nothing goes, and deletes make room."""
    _, apart = stage.apart({"FELIX_CACHE_INDEX_BYTES": str(BUDGET)})
    felix, cache = stage.felix, Cache(apart, await apart.connect(), apart.cache(1))
    count = 0
    while count < MOST:
        try:
            await cache.put(f"k{count}", VALUE)
        except felix.FelixError as error:
            equal((error.code, error.retry), ("limit_exceeded", "fatal"), f"refusal of put {count}: {error}")
            break
        count += 1
    true(BUDGET // 4 < count * len(VALUE) <= BUDGET, f"{count} values of {len(VALUE)} bytes went into {BUDGET} bytes")
    for number in range(count):
        equal(await cache.get(f"k{number}"), VALUE, f"k{number} of {count} in a cache that is full")
    await cache.put("k0", VALUE[::-1])
    await raises(felix.FelixError, cache.put("one more", VALUE), "one more", code="limit_exceeded", retry="fatal")
    equal(await cache.get("one more"), None, "what was refused")
    for number in range(1, 11):
        equal(await cache.delete(f"k{number}"), VALUE, f"delete k{number}")
    for number in range(5):
        await cache.put(f"new{number}", VALUE)
    equal(await cache.get("new4"), VALUE, "a new key after deletes")
    return f"{count} keys in {BUDGET >> 20} MiB"


@scenario(own_broker=True)
async def memory_that_is_full(stage, client):
    """Puts go on and others go; a value larger than everything is refused and leaves the old one in place."""
    _, apart = stage.apart({"FELIX_CACHE_MEMORY_BYTES": str(BUDGET)})
    felix, cache = stage.felix, Cache(apart, await apart.connect(), apart.cache(1, in_memory=True))
    for number in range(MOST):
        await cache.put(f"k{number}", VALUE)
        equal(await cache.get(f"k{number}"), VALUE, f"k{number}, which was just put")
    there = 0
    for number in range(MOST):
        value = await cache.get(f"k{number}")
        true(value in (None, VALUE), f"k{number} holds {value!r}")
        there += value is not None
    true(BUDGET // 2 < there * len(VALUE) <= BUDGET, f"{there} values of {len(VALUE)} bytes are in {BUDGET} bytes")
    await cache.put("large", b"old")
    large = b"x" * (2 * BUDGET)
    await raises(felix.FelixError, cache.put("large", large), "a value larger than everything", code="limit_exceeded")
    equal(await cache.get("large"), b"old", "the value before it")
    return f"{there} of {MOST} values are there"
