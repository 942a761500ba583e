import unittest

from suite.checks import Mismatch
from suite.history import Outcome
from suite.ledger import Delivery, Ledger, Rules, Settlement

DONE, REFUSED, UNKNOWN = Outcome.DONE, Outcome.REFUSED, Outcome.UNKNOWN
PLACE = (0, 7)


def delivery(asked, attempts=1, payload=b"p", took=0.01, member=""):
    return Delivery(asked, asked + took, attempts, payload, member)


def at(sent, outcome=DONE, of=None, took=0.01):
    return Settlement(sent, sent + took, outcome, of)


class LedgerTest(unittest.TestCase):
    def setUp(self):
        self.ledger = Ledger(Rules(visibility=1.0, limit=3))

    def note(self, deliveries=(), acks=(), nacks=(), kills=()):
        for each in deliveries:
            self.ledger.delivered(PLACE, each)
        for each in acks:
            self.ledger.acked(PLACE, each)
        for each in nacks:
            self.ledger.nacked(PLACE, each)
        for each in kills:
            self.ledger.killed(*each)

    def accepted(self, dead=(), log=None):
        self.ledger.check({PLACE: b"p"} if log is None else log, set(dead))

    def refused(self, text, dead=(), log=None):
        with self.assertRaisesRegex(Mismatch, text):
            self.accepted(dead, log)

    def test_settled_or_given_up(self):
        self.note([delivery(0)])
        self.refused("neither settled nor given up")
        self.accepted(dead=[PLACE])
        self.note(acks=[at(0.1)])
        self.accepted()
        self.refused("is a dead letter", dead=[PLACE])

    def test_an_ack_of_unknown_outcome_explains_both(self):
        self.note([delivery(0)], [at(0.1, UNKNOWN)])
        self.accepted()
        self.accepted(dead=[PLACE])

    def test_an_ack_is_never_refused(self):
        self.note([delivery(0)], [at(0.1, REFUSED), at(0.2)])
        self.refused("was refused")

    def test_nothing_comes_after_its_ack_was_answered(self):
        self.note([delivery(0), delivery(5, 2)], [at(0.1)])
        self.refused("came again, asked for")

    def test_what_was_asked_for_before_may_come_after(self):
        self.note([delivery(0), delivery(1.1, 2, took=0.5)], [at(1.2)])
        self.accepted()

    def test_only_what_is_in_the_log_comes(self):
        self.note([delivery(0)], [at(0.1)])
        self.refused("where the log holds none", log={})
        self.refused("came as b'p'", log={PLACE: b"other"})

    def test_attempts_grow_up_to_the_limit(self):
        self.note([delivery(0), delivery(2, 2), delivery(4, 3), delivery(6, 3)], [at(6.1)], kills=[(4.5, 5.5)])
        self.accepted()
        self.note([delivery(8, 4)])
        self.refused("4 attempts, of 3")

    def test_attempts_do_not_repeat_without_a_kill(self):
        self.note([delivery(0), delivery(2, 1)], [at(2.1)])
        self.refused("1 attempts after 1")
        self.note(kills=[(0.5, 1.5)])
        self.accepted()

    def test_a_record_does_not_come_for_ever(self):
        self.note([delivery(2 * number, min(number + 1, 3)) for number in range(4)], [at(6.1)])
        self.refused("came 4 times, want at most 3")

    def test_a_claim_has_one_holder(self):
        self.note([delivery(0), delivery(0.9, 2)], [at(0.95)])
        self.refused("two holders")
        self.note(nacks=[at(0.5, UNKNOWN, delivery(0))])
        self.accepted()

    def test_a_member_takes_back_what_it_holds_and_nobody_else(self):
        self.note([delivery(0, member="ann"), delivery(0.5, 2, member="ann")], [at(3)])
        self.accepted()
        self.note([delivery(0.9, 3, member="bob")])
        self.refused("two holders")

    def test_a_kill_ends_claims(self):
        self.note([delivery(0), delivery(0.9, 2)], [at(0.95)], kills=[(0.3, 0.8)])
        self.accepted()

    def test_a_claim_that_lapsed_has_another_holder(self):
        self.note([delivery(0), delivery(0.7, 2, took=0.31)], [at(1.1)])
        self.accepted()

    def test_a_nack_is_taken_while_its_claim_stands(self):
        held = delivery(0)
        self.note([held], [at(3)], [at(0.5, REFUSED, held)])
        self.refused("of a claim that stood was refused")

    def test_a_late_ack_of_another_ends_a_claim(self):
        held = delivery(0)
        self.note([held], [at(0.4)], [at(0.5, REFUSED, held)])
        self.accepted()

    def test_a_nack_is_refused_afterwards(self):
        held = delivery(0)
        self.note([held], [at(3)], [at(1.2, DONE, held)])
        self.refused("had lapsed was taken")

    def test_deliveries_at_the_limit_have_one_name(self):
        held = delivery(0, 3)
        self.note([held, delivery(1.1, 3)], [at(3)], [at(1.2, DONE, held)], kills=[(-1, -0.5)])
        self.accepted()

    def test_a_second_nack_may_be_refused(self):
        held = delivery(0)
        self.note([held], [at(3)], [at(0.4, DONE, held), at(0.5, REFUSED, held)])
        self.accepted()
