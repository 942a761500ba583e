"""What a broker says of itself in numbers."""

from __future__ import annotations

import urllib.request

from suite.checks import Mismatch
from suite.devfile import Dev


def plain(dev: Dev) -> dict[str, float]:
    """The metrics that have no labels, by name."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(dev.http + "/metrics", timeout=10) as answer:
            text = answer.read().decode()
    except OSError as error:
        raise Mismatch(f"metrics of the broker: {error}") from error
    values = {}
    for line in text.splitlines():
        name, _, value = line.partition(" ")
        if name and not name.startswith("#") and "{" not in name:
            values[name] = float(value)
    return values
