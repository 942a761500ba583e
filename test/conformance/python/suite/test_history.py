import unittest

from suite.checks import Mismatch
from suite.history import Change, Operation, Outcome, explain

DONE, REFUSED, UNKNOWN = Outcome.DONE, Outcome.REFUSED, Outcome.UNKNOWN
NOW = 1_000_000.0  # seconds


def put(value, outcome=DONE, ttl=None, at=NOW):
    return Operation("put", outcome, at, at + 0.01, value, ttl)


def delete(value, outcome=DONE, at=NOW):
    return Operation("delete", outcome, at, at + 0.01, value)


def get(value, outcome=DONE, at=NOW):
    return Operation("get", outcome, at, at + 0.01, value)


def changes(*values, ends=0):
    return [Change(10 + index, value, ends if value is not None else 0) for index, value in enumerate(values)]


ENDS = int((NOW + 1) * 1000)  # of an entry that was put at NOW for a second


class ExplainTest(unittest.TestCase):
    def accepted(self, operations, history):
        explain("k", operations, history)

    def refused(self, operations, history, text):
        with self.assertRaisesRegex(Mismatch, text):
            explain("k", operations, history)

    def test_what_was_done_is_there_in_order(self):
        self.accepted([put(b"a"), get(b"a"), put(b"b"), delete(b"b"), get(None), delete(None)], changes(b"a", b"b", None))
        self.refused([put(b"a"), put(b"b")], changes(b"b", b"a"), "put of b'a'")
        self.refused([put(b"a"), put(b"b")], changes(b"a"), "put of b'b'")

    def test_nothing_else_is_there(self):
        self.refused([put(b"a")], changes(b"a", b"a"), "nobody made")
        self.refused([put(b"a")], changes(b"a", None), "nobody made")
        self.refused([put(b"a", REFUSED)], changes(b"a"), "nobody made")
        self.refused([], changes(b"x"), "nobody made")

    def test_offsets_ascend(self):
        self.refused([put(b"a"), put(b"b")], [Change(4, b"a", 0), Change(4, b"b", 0)], "offset 4 after one at 4")

    def test_what_is_unknown_may_be_there_or_not(self):
        for history in (changes(b"a", b"b"), changes(b"a")):
            self.accepted([put(b"a"), put(b"b", UNKNOWN)], history)
        for history in (changes(b"a", None, b"b"), changes(b"a", b"b")):
            self.accepted([put(b"a"), delete(None, UNKNOWN), put(b"b")], history)

    def test_an_answer_decides_what_was_unknown(self):
        self.refused([put(b"a"), put(b"b", UNKNOWN), delete(b"a")], changes(b"a", b"b", None), "in force was")
        self.refused([put(b"a"), delete(None, UNKNOWN), get(b"a"), put(b"b")], changes(b"a", None, b"b"), "put of b'b'")
        self.accepted([put(b"a"), delete(None, UNKNOWN), get(b"a"), delete(b"a")], changes(b"a", None))

    def test_a_get_right_after_a_put_of_unknown_outcome_may_be_older(self):
        self.accepted([put(b"a"), put(b"b", UNKNOWN), get(b"a"), get(b"b")], changes(b"a", b"b"))
        self.refused([put(b"a"), put(b"b"), get(b"a")], changes(b"a", b"b"), "get of b'a'")

    def test_an_entry_ends_when_its_time_is_up_and_not_before(self):
        history = changes(b"a", None, ends=ENDS)
        self.accepted([put(b"a", ttl=1.0), get(b"a"), get(None, at=NOW + 1.1)], history)
        self.accepted([put(b"a", ttl=1.0), get(None, at=NOW + 1.1)], history[:1])
        self.refused([put(b"a", ttl=1.0), get(None, at=NOW + 0.5)], history, "in force was")
        self.refused([put(b"a", ttl=1.0), get(b"a", at=NOW + 1.1)], history, "its time was up")
        self.refused([put(b"a", ttl=1.0)], changes(b"a", ends=ENDS + 100), "it ends at")
        self.refused([put(b"a")], changes(b"a", ends=ENDS), "want 0 to 0")
        self.accepted([put(b"a", ttl=1.0), put(b"b", at=NOW + 2)], [*history, Change(20, b"b", 0)])

    def test_an_end_is_announced_once(self):
        history = [*changes(b"a", None, ends=ENDS), Change(20, None, 0)]
        self.refused([put(b"a", ttl=1.0)], history, "nobody made")
