"""Whether what the workers of a queue were told fits together: each record settled once or given up once, and held by one at a time.

Pure: no client and no clock. Times are seconds of one monotonic clock, read before a call was sent and after it was answered. What the
broker decided, it decided between the two; so only what is wrong for each moment in between is wrong.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from suite.checks import Mismatch
from suite.history import Outcome

LOST_PER_KILL = 3  # deliveries of one record that a kill may make uncounted: the one in hand, and those whose numbers were on their way

Place = tuple[int, int]  # shard and offset


@dataclass(frozen=True)
class Delivery:
    """A record in the answer of a poll."""

    asked: float
    came: float
    attempts: int
    payload: bytes
    member: str = ""  # the name under which it is held, if it has one: it may take back what it holds


@dataclass(frozen=True)
class Settlement:
    """An ack, or a nack of one delivery."""

    sent: float
    answered: float
    outcome: Outcome
    of: Delivery | None = None  # of a nack


@dataclass(frozen=True)
class Rules:
    """What the broker was told."""

    visibility: float  # seconds
    limit: int  # failures of a record


class Ledger:
    """Notes of all workers. Adding is safe from several threads at once."""

    def __init__(self, rules: Rules):
        self._rules = rules
        self._deliveries: dict[Place, list[Delivery]] = defaultdict(list)
        self._acks: dict[Place, list[Settlement]] = defaultdict(list)
        self._nacks: dict[Place, list[Settlement]] = defaultdict(list)
        self._kills: list[tuple[float, float]] = []
        self.settled: set[Place] = set()  # acked, and told so
        self.doubtful: set[Place] = set()  # acked, without an answer
        self.deliveries = 0

    def delivered(self, place: Place, delivery: Delivery) -> None:
        """A poll was answered with a record."""
        self._deliveries[place].append(delivery)
        self.deliveries += 1

    def acked(self, place: Place, ack: Settlement) -> None:
        """An ack was sent, and answered or not."""
        self._acks[place].append(ack)
        if ack.outcome is Outcome.DONE:
            self.settled.add(place)
        elif ack.outcome is Outcome.UNKNOWN:
            self.doubtful.add(place)

    def nacked(self, place: Place, nack: Settlement) -> None:
        """A nack was sent, and answered or not."""
        self._nacks[place].append(nack)

    def killed(self, before: float, after: float) -> None:
        """The broker was killed, and answered again."""
        self._kills.append((before, after))

    def check(self, log: dict[Place, bytes], dead: set[Place]) -> None:
        """Raise a Mismatch unless all notes fit to what the log holds and to what was given up in the end."""
        for place in self._deliveries:
            if place not in log:
                raise Mismatch(f"a record was delivered at {place}, where the log holds none")
        for place in sorted(log):
            self._check_end(place, dead)
            self._check_deliveries(place, log[place])
            self._check_holders(place)
            self._check_nacks(place)

    def _check_end(self, place: Place, dead: set[Place]) -> None:
        """Settled or given up: one of them, and not both."""
        outcomes = {ack.outcome for ack in self._acks[place]}
        if Outcome.REFUSED in outcomes:
            raise Mismatch(f"an ack of {place} was refused")
        if Outcome.DONE in outcomes and place in dead:
            raise Mismatch(f"{place} was settled, and is a dead letter")
        if not outcomes and place not in dead:
            raise Mismatch(f"{place} was neither settled nor given up: {self._deliveries[place]}")

    def _check_deliveries(self, place: Place, payload: bytes) -> None:
        """The right payload, allowed numbers that grow, not too many, none that was asked for after an ack was answered."""
        deliveries = sorted(self._deliveries[place], key=lambda each: each.came)
        done = min((ack.answered for ack in self._acks[place] if ack.outcome is Outcome.DONE), default=None)
        for each in deliveries:
            if each.payload != payload:
                raise Mismatch(f"{place} came as {each.payload!r}, and is {payload!r}")
            if not 1 <= each.attempts <= self._rules.limit:
                raise Mismatch(f"{place} came with {each.attempts} attempts, of {self._rules.limit}")
            if done is not None and each.asked >= done:
                raise Mismatch(f"{place} came again, asked for {each.asked - done:.3f} s after its ack was answered: {deliveries}")
        for one, two in zip(deliveries, deliveries[1:]):
            if two.asked < one.came or self._killed_within(one.asked, two.came):
                continue
            if two.attempts <= one.attempts and two.attempts != self._rules.limit:
                raise Mismatch(f"{place} came with {two.attempts} attempts after {one.attempts}")
        most = self._rules.limit + LOST_PER_KILL * len(self._kills)
        if len(deliveries) > most:
            raise Mismatch(f"{place} came {len(deliveries)} times, want at most {most}")

    def _check_holders(self, place: Place) -> None:
        """No delivery while another's claim stands: until it lapses, is given or taken back, or the broker is killed."""
        deliveries = sorted(self._deliveries[place], key=lambda each: each.came)
        for number, one in enumerate(deliveries):
            for two in deliveries[number + 1 :]:
                first, last = min(one.asked, two.asked), two.came
                if last >= first + self._rules.visibility or self._killed_within(first, last):
                    continue
                if one.member and one.member == two.member:
                    continue
                given = (nack for nack in self._nacks[place] if nack.outcome is not Outcome.REFUSED)
                if not any(nack.sent < last and nack.answered > first for nack in given):
                    raise Mismatch(f"{place} has two holders: {one}, and {last - first:.3f} s after that was asked for, {two}")

    def _check_nacks(self, place: Place) -> None:
        """A nack is taken while its claim stands, and refused afterwards."""
        for nack in self._nacks[place]:
            if self._killed_within(nack.of.asked, nack.answered):
                continue
            refused = nack.outcome is Outcome.REFUSED
            others = any(each is not nack and each.of is nack.of for each in self._nacks[place])
            others = others or any(ack.sent < nack.answered for ack in self._acks[place])  # late, by who held it before
            if refused and not others and nack.answered < nack.of.asked + self._rules.visibility:
                raise Mismatch(f"{place}: the nack of a claim that stood was refused: {nack}")
            late = nack.sent > nack.of.came + self._rules.visibility
            if nack.outcome is Outcome.DONE and late and not self._named_alike(place, nack.of):
                raise Mismatch(f"{place}: the nack of a claim that had lapsed was taken: {nack}, of {self._deliveries[place]}")

    def _named_alike(self, place: Place, delivery: Delivery) -> bool:
        """Whether there was a later delivery of that number, as there may be at the limit: a nack can not tell them apart.

        It takes effect then only if the connection of the later one is gone.
        """
        others = (each for each in self._deliveries[place] if each is not delivery and each.came > delivery.came)
        return delivery.attempts == self._rules.limit and any(each.attempts == delivery.attempts for each in others)

    def _killed_within(self, first: float, last: float) -> bool:
        return any(before < last and after > first for before, after in self._kills)
