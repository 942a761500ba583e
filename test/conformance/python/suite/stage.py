"""What a scenario finds when it starts: fresh streams and caches that are being served, and a client."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass

from suite import placement
from suite.checks import Mismatch
from suite.controlplane import ControlPlane
from suite.daemon import Daemon, Daemons
from suite.devfile import Dev

SERVED_WITHIN = 10.0  # seconds from creation to the first accepted request
PROBE = b"conformance-probe"  # record put on every shard of a new stream


@dataclass(frozen=True)
class Sizes:
    """How much the scenarios do that can do more or less."""

    records: int = 10_000  # records of each order scenario
    operations: int = 3_000  # operations of the cache campaign
    kills: int = 3  # brokers that each campaign kills
    queue_records: int = 1_500  # records of the queue campaign


class Stage:
    """Resources of one scenario on one surface. Names are drawn anew, so that nothing old can be met."""

    def __init__(self, felix, dev: Dev, surface, sizes: Sizes, daemons: Daemons):
        self.felix = felix
        self.dev = dev
        self.surface = surface
        self.sizes = sizes
        self.tenant = dev.tenant_id
        self.namespace = dev.namespace
        self._control_plane = ControlPlane(dev)
        self._daemons = daemons
        self._probe = None
        self._created: list[tuple] = []

    async def connect(self, **options):
        """A new client with the dev token; options override what is passed to the client."""
        arguments = {"tenant_id": self.tenant, "token": self.dev.client_token, "ca_file": self.dev.ca_file}
        arguments.update(options)
        return await self.surface.connect(self.dev.client_addr, **arguments)

    def stream(
        self, shards: int, durable: bool = False, retention_bytes: int | None = None, name: str | None = None
    ) -> str:
        """Create a stream, ephemeral unless durable, and wait until each shard of it takes a record.

        A name is for a stream that was deleted before; the others get one that nobody had.
        """
        name = name or f"py-{shards}-{secrets.token_hex(4)}"
        self._control_plane.create_stream(name, shards, durable, retention_bytes)
        self._created.append((self._control_plane.delete_stream, name))
        self._await_stream(name, shards)
        return name

    def delete_stream(self, name: str) -> None:
        """Delete a stream before the scenario ends."""
        self._control_plane.delete_stream(name)
        self._created.remove((self._control_plane.delete_stream, name))

    def cache(self, shards: int, in_memory: bool = False) -> str:
        """Create a cache, kept in a log unless in_memory, and wait until each shard of it answers."""
        name = f"py-{shards}-{secrets.token_hex(4)}"
        self._control_plane.create_cache(name, shards, in_memory)
        self._created.append((self._control_plane.delete_cache, name))
        for shard in range(shards):
            key = placement.keys_for(shard, shards, 1)[0].decode()
            self._retry(lambda: self._prober().cache_get(self.tenant, self.namespace, name, key), name)
        return name

    def apart(self, environment: dict[str, str] | None = None) -> tuple[Daemon, Stage]:
        """A broker of the scenario's own, which it may kill, and a stage in front of it."""
        daemon = self._daemons.make(environment)
        return daemon, Stage(self.felix, daemon.dev, self.surface, self.sizes, self._daemons)

    def clean(self) -> None:
        """Delete what was created, brokers included."""
        self._daemons.remove_all()
        created, self._created = self._created, []
        for delete, name in created:
            delete(name)

    def _await_stream(self, name: str, shards: int) -> None:
        deadline = time.monotonic() + SERVED_WITHIN
        prober = self._prober()
        while (width := prober.stream_shards(self.tenant, self.namespace, name)) != shards:
            if time.monotonic() >= deadline:
                raise Mismatch(f"stream {name} has {width} shards {SERVED_WITHIN:.0f} s after creation, want {shards}")
            time.sleep(0.02)
        for shard in range(shards):
            key = placement.keys_for(shard, shards, 1)[0]
            self._retry(lambda: prober.publish(self.tenant, self.namespace, name, PROBE, key=key), name)

    def _retry(self, call, name: str) -> None:
        felix = self.felix
        deadline = time.monotonic() + SERVED_WITHIN
        while True:
            try:
                call()
                return
            except (felix.NotFoundError, felix.ShardUnavailableError) as error:
                if time.monotonic() >= deadline:
                    raise Mismatch(f"{name} is not served {SERVED_WITHIN:.0f} s after creation: {error}") from error
            time.sleep(0.02)

    def _prober(self):
        """A client of its own, so that probing teaches the client under test nothing."""
        if self._probe is None:
            dev = self.dev
            self._probe = self.felix.Client(
                dev.client_addr, tenant_id=dev.tenant_id, token=dev.client_token, ca_file=dev.ca_file
            )
        return self._probe
