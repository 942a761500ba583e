import asyncio
import types
import unittest

from suite.surfaces import AsyncSurface, Blocking, SyncSurface, drive


class _Handle:
    closed = False

    def next_event(self, timeout=None):
        return timeout


def _felix():
    kinds = ("Client", "SubscriptionHandle", "ShardedSubscriptionHandle", "CacheWatchHandle")
    return types.SimpleNamespace(**{kind: type(kind, (_Handle,), {}) for kind in kinds})


class DriveTest(unittest.TestCase):
    def test_returns_the_result(self):
        async def answer():
            return 7

        self.assertEqual(drive(answer()), 7)

    def test_refuses_a_coroutine_that_suspends(self):
        with self.assertRaises(RuntimeError):
            drive(asyncio.sleep(0))


class BlockingTest(unittest.TestCase):
    def test_awaits_methods_and_passes_attributes(self):
        handle = Blocking(_Handle(), ())
        self.assertEqual(drive(handle.next_event(timeout=3)), 3)
        self.assertIs(handle.closed, False)


class GatherTest(unittest.TestCase):
    def test_all_jobs_run_and_the_failure_is_raised_at_the_end(self):
        for surface in (SyncSurface(_felix()), AsyncSurface(_felix())):
            with self.subTest(surface=surface.name):
                ran = []

                def job(number):
                    async def work():
                        ran.append(number)
                        if number == 1:
                            raise ValueError("one")
                        return number

                    return work

                async def scenario():
                    self.assertEqual(await surface.gather(job(0), job(2)), [0, 2])
                    with self.assertRaisesRegex(ValueError, "one"):
                        await surface.gather(job(0), job(1), job(2))

                surface.run(scenario())
                self.assertEqual(sorted(ran), [0, 0, 1, 2, 2])

    def test_of_two_failures_the_earlier_is_raised(self):
        for surface in (SyncSurface(_felix()), AsyncSurface(_felix())):
            with self.subTest(surface=surface.name):

                async def late():
                    await surface.sleep(0.3)
                    raise ValueError("late")

                async def early():
                    raise KeyError("early")

                async def scenario():
                    with self.assertRaisesRegex(KeyError, "early"):
                        await surface.gather(late, early)

                surface.run(scenario())


if __name__ == "__main__":
    unittest.main()
