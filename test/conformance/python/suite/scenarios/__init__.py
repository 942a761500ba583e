"""Every scenario, in the order in which they run."""

from suite.scenarios import caching, connecting, placing, publishing, refusing, subscribing, together

ALL = (
    connecting.connects_without_alpn,
    connecting.connects_with_alpn,
    connecting.connects_with_provider,
    connecting.bad_tokens_are_refused,
    connecting.identities_stand_apart,
    publishing.acknowledgements,
    publishing.unknown_stream,
    publishing.single_records_in_order,
    publishing.batched_records_in_order,
    publishing.keyed_records_in_order,
    publishing.sizes,
    placing.keys_land_where_the_rule_says,
    subscribing.latest_sees_only_what_follows,
    subscribing.earliest_joins_history_and_live,
    subscribing.offset_start_is_refused,
    subscribing.several_readers,
    subscribing.slow_reader_loses_nothing_within_its_queue,
    subscribing.sharded_reader,
    subscribing.look_ups,
    caching.cache_thousand,
    caching.cache_overwrites,
    caching.cache_ttl,
    caching.cache_many_callers,
    caching.unknown_cache,
    refusing.forbidden_actions,
    together.everything_at_once,
)
