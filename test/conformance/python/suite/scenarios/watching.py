"""Cache watches: by key and by prefix, from now, from an offset and with what is there; refusals."""

from __future__ import annotations

from suite import placement
from suite.checks import equal, raises, true
from suite.following import expect_quiet, next_change
from suite.runner import scenario
from suite.scenarios.caching import Cache


def watcher(stage, client, cache: str):
    """A function that watches a key or a prefix of the cache: watch(key=...), watch(prefix=..., start=..., ...)."""
    filters = stage.felix.CacheWatchFilter

    async def watch(key: str | None = None, prefix: str | None = None, **options):
        what = filters.key(key) if key is not None else filters.prefix(prefix)
        return await client.watch_cache(stage.tenant, stage.namespace, cache, what, **options)

    return watch


def facts(change) -> tuple:
    """All there is to a change."""
    return (change.key, change.value, change.offset, change.expires_at_millis)


async def expect_change(handle, key: str, value: bytes | None, after: int, what: str) -> int:
    """The next change is this one, beyond the offset `after`; its offset."""
    change = await next_change(handle, what)
    equal((change.key, change.value), (key, value), what)
    true(change.offset > after, f"{what}: offset {change.offset} after {after}")
    return change.offset


@scenario()
async def watch_a_key(stage, client):
    """A watch of a key, on any of four shards, sees the puts and deletes of that key in order, and of no other."""
    name = stage.cache(4)
    cache, watch = Cache(stage, client, name), watcher(stage, client, name)
    for shard in range(4):
        key, other = (each.decode() for each in placement.keys_for(shard, 4, 2))
        await cache.put(key, b"before")
        handle = await watch(key=key)
        equal((handle.resnapshot, handle.retained_count), (False, None), f"a live watch of {key}")
        offset = handle.resume_offset - 1
        for number, value in enumerate((b"one", b"", b"\x00\xff", b"v" * 70_000)):
            await cache.put(other, b"other")
            await cache.put(key, value)
            offset = await expect_change(handle, key, value, offset, f"put {number} of {key}")
        await cache.delete(other)
        equal(await cache.delete(key), b"v" * 70_000, f"delete {key}")
        offset = await expect_change(handle, key, None, offset, f"delete of {key}")
        equal(await cache.delete(key), None, f"second delete of {key}")
        await cache.put(key, b"again")
        await expect_change(handle, key, b"again", offset, f"put of {key} after its delete, and none between")
        await expect_quiet(handle, f"watch of {key}")
        await handle.close()


@scenario()
async def watch_a_prefix(stage, client):
    """Watches of nested prefixes see the keys below them in one order; the empty prefix sees each offset of the shard."""
    name = stage.cache(1)
    cache, watch = Cache(stage, client, name), watcher(stage, client, name)
    prefixes = ("", "room/", "room/1/", "cl\u00e9")
    handles = [await watch(prefix=prefix) for prefix in prefixes]
    keys = ["room/1/a", "room/2/a", "room/1/b", "roo", "cl\u00e9f", "room/1/a", "x", "room/"]
    offsets = {}
    for number, key in enumerate(keys):
        value = None if number == 5 else b"%d" % number
        await (cache.put(key, value) if value is not None else cache.delete(key))
        offset = await expect_change(handles[0], key, value, offsets.get(number - 1, -1), f"change {number} of all keys")
        true(number == 0 or offset == offsets[number - 1] + 1, f"change {number} has offset {offset}, not the next one")
        offsets[number] = offset
    for prefix, handle in zip(prefixes[1:], handles[1:]):
        for number, key in enumerate(keys):
            if key.startswith(prefix):
                change = await next_change(handle, f"change {number} below {prefix}")
                want = (key, None if number == 5 else b"%d" % number, offsets[number])
                equal((change.key, change.value, change.offset), want, f"change {number} below {prefix}")
    await stage.surface.gather(*(lambda each=each: expect_quiet(each, "watches of prefixes") for each in handles))


@scenario()
async def watch_from_an_offset(stage, client):
    """Any offset begins exactly there, joins what follows, and one behind the end is the end; beyond it is refused."""
    name, felix = stage.cache(1), stage.felix
    cache, watch = Cache(stage, client, name), watcher(stage, client, name)
    live = await watch(prefix="")
    history = []
    for number in range(60):
        key = f"k{number % 7}"
        await (cache.put(key, b"%d" % number) if number % 11 else cache.delete(key))
        if number:
            change = await next_change(live, f"change {number}")
            history.append((change.key, change.value, change.offset))
    handles = [(first, await watch(prefix="", start=history[first][2])) for first in (0, 1, 30, len(history) - 1)]
    handles.append((len(history), await watch(prefix="", start=history[-1][2] + 1)))
    for number in range(60, 70):
        await cache.put("after", b"%d" % number)
        change = await next_change(live, f"change {number}")
        history.append((change.key, change.value, change.offset))
    for first, handle in handles:
        equal(handle.resnapshot, False, f"watch from change {first}")
        for number, want in enumerate(history[first:], first):
            change = await next_change(handle, f"change {number} from change {first}")
            equal((change.key, change.value, change.offset), want, f"change {number} from change {first}")
    await stage.surface.gather(*(lambda each=each: expect_quiet(each, "watches from offsets") for _, each in handles))
    one = await watch(key="k3", start=history[0][2])
    for want in (each for each in history if each[0] == "k3"):
        change = await next_change(one, "history of a key")
        equal((change.key, change.value, change.offset), want, "history of a key")
    for beyond in (2, 1000, 2**62):
        call = watch(prefix="", start=history[-1][2] + beyond)
        await raises(felix.CursorError, call, f"watch from {beyond} behind the last change")
    await raises(ValueError, watch(prefix="", start=0, retained=True), "a start and what is there")


@scenario()
async def watch_what_is_there(stage, client):
    """What a prefix holds comes first, as many as were announced, at the offsets of their puts; of nothing there are 0."""
    name = stage.cache(1)
    cache, watch = Cache(stage, client, name), watcher(stage, client, name)
    live = await watch(prefix="")
    empty = await watch(prefix="room/", retained=True)
    equal(empty.retained_count, 0, "values below an empty prefix")
    held = {}
    for key, value in (("room/a", b"1"), ("room/b", b""), ("room/c", b"c" * 9000), ("hall/a", b"h")):
        await cache.put(key, value, **({"ttl": 300.0} if key == "room/c" else {}))
        change = await next_change(live, f"put of {key}")
        held[key] = facts(change)
        equal(held[key][:2], (key, value), f"put of {key}")
    await cache.put("room/gone", b"g")
    await cache.delete("room/gone")
    await cache.put("room/lapsed", b"l", ttl=0.05)
    await cache.put("room/a", b"2")
    for _ in range(4):
        change = await next_change(live, "the last changes")
    held["room/a"] = facts(change)
    await stage.surface.sleep(0.1)
    for prefix, count in (("room/", 3), ("", 4), ("none/", 0)):
        handle = await watch(prefix=prefix, retained=True)
        equal((handle.retained_count, handle.resnapshot), (count, False), f"values below {prefix!r}")
        got = [await next_change(handle, f"value {number} below {prefix!r}") for number in range(count)]
        want = sorted((each for each in held.values() if each[0].startswith(prefix)), key=lambda each: each[2])
        equal([facts(each) for each in got], want, f"values below {prefix!r}")
        true(all(each.offset < handle.resume_offset for each in got), f"what is there lies before {handle.resume_offset}")
        await handle.close()
    one = await watch(key="room/b", retained=True)
    equal(one.retained_count, 1, "values of a key")
    await expect_change(one, "room/b", b"", -1, "the value of a key")
    await cache.put("room/b", b"new")
    await expect_change(one, "room/b", b"new", one.resume_offset - 1, "the change after it")
    await expect_change(empty, "room/a", b"1", empty.resume_offset - 1, "the first change below a prefix that was empty")


@scenario()
async def watch_over_shards(stage, client):
    """A prefix of a cache of several shards needs one of them, which this client cannot name; keys work on each of them."""
    name, felix = stage.cache(4), stage.felix
    cache, watch = Cache(stage, client, name), watcher(stage, client, name)
    for options in ({}, {"retained": True}, {"start": 0}):
        call = watch(prefix="", **options)
        await raises(felix.FelixError, call, "a prefix over four shards", code="invalid_request", retry="fatal")
    keys = [key.decode() for shard in range(4) for key in placement.keys_for(shard, 4, 8)]
    handles = [await watch(key=key, retained=True) for key in keys]
    equal([handle.retained_count for handle in handles], [0] * len(keys), "values of keys that were never written")

    def writer(key):
        async def write():
            for number in range(10):
                await cache.put(key, b"%d" % number)

        return write

    await stage.surface.gather(*(writer(key) for key in keys))
    for key, handle in zip(keys, handles):
        offset = handle.resume_offset - 1
        for number in range(10):
            offset = await expect_change(handle, key, b"%d" % number, offset, f"put {number} of {key}")
    await stage.surface.gather(*(lambda each=each: expect_quiet(each, "watches of keys") for each in handles))
    return f"{len(handles)} watches"


@scenario()
async def watches_that_are_refused(stage, client):
    """Unknown caches, other namespaces and caches in memory: typed refusals at once, and the client goes on."""
    felix, name, memory = stage.felix, stage.cache(1), stage.cache(1, in_memory=True)
    everything = felix.CacheWatchFilter.prefix("")
    for _ in range(2):
        call = client.watch_cache(stage.tenant, stage.namespace, name + "-none", everything)
        await raises(felix.NotFoundError, call, "watch of an unknown cache", code="not_found", within=15.0)
        call = client.watch_cache(stage.tenant, "restricted", name, everything)
        await raises(felix.AuthError, call, "watch in another namespace", code="forbidden", retry="fatal")
        for options in ({}, {"retained": True}, {"start": 0}):
            call = client.watch_cache(stage.tenant, stage.namespace, memory, everything, **options)
            await raises(felix.FelixError, call, "watch of a cache in memory", code="invalid_request", retry="fatal")
        handle = await client.watch_cache(stage.tenant, stage.namespace, name, everything)
        await Cache(stage, client, name).put("k", b"v")
        await expect_change(handle, "k", b"v", handle.resume_offset - 1, "a watch after refusals")
        await handle.close()
