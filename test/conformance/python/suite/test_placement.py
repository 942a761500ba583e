import unittest

from suite import placement


class PlacementTest(unittest.TestCase):
    def test_vectors_hold(self):
        for key, value, of3, of4, of12 in placement.VECTORS:
            with self.subTest(key=key):
                self.assertEqual(placement.finalise(placement.fnv1a(key)), value)
                for width, shard in ((3, of3), (4, of4), (12, of12)):
                    self.assertEqual(placement.shard_of(key, width), shard)

    def test_raw_fnv_values(self):
        self.assertEqual(placement.fnv1a(b""), 0xCBF29CE484222325)
        self.assertEqual(placement.fnv1a(b"a"), 0xAF63DC4C8601EC8C)
        self.assertEqual(placement.fnv1a(b"k0"), 0x08BE0E07B562230E)

    def test_no_key_is_shard_zero_but_an_empty_key_is_hashed(self):
        self.assertEqual(placement.shard_of(None, 4), 0)
        self.assertEqual(placement.shard_of(b"", 4), 3)
        self.assertEqual(placement.shard_of(b"anything", 1), 0)

    def test_keys_for_returns_distinct_keys_of_that_shard(self):
        for shard in range(4):
            keys = placement.keys_for(shard, 4, 16)
            self.assertEqual(len(set(keys)), 16)
            self.assertEqual({placement.shard_of(key, 4) for key in keys}, {shard})


if __name__ == "__main__":
    unittest.main()
