#!/usr/bin/env python3
"""Writes vectors.json: conformance vectors of the FLX1 client protocol, for implementations in any language.

The bytes are built here with struct.pack, from the layouts of the protocol document, and never by the Go codec that
is tested against them. Run it in this directory: python3 vectors.py > vectors.json

Conventions of the file: byte strings are hex; 64-bit integers are decimal strings (they use the whole u64 range);
texts are plain. "frames" decode to "fields" and encode back to the same bytes. "json" texts decode, and encode back to
the same text. "accepted" texts decode, and encode to "canonical". "refused" frames must fail: "stage" says where
(header, flags, layout, json, type), "request_id" is what an answer has to carry.
"""
import json
import struct
import sys

M64 = (1 << 64) - 1


def frame(flags, payload):
    return struct.pack(">IHHI", 0x464C5831, 1, flags, len(payload)) + payload


def s16(b):
    return struct.pack(">H", len(b)) + b


def s32(b):
    return struct.pack(">I", len(b)) + b


def publish(name, flags, tenant, namespace, stream, payloads, request_id=None, ack_mode=None, producer_id=None,
            sequence=None, key=None):
    body = b""
    fields = {"tenant_id": tenant, "namespace": namespace, "stream": stream, "payloads": [p.hex() for p in payloads]}
    if flags & 0x0008:
        body += struct.pack(">QB", request_id, ack_mode)
        fields.update(request_id=str(request_id), ack_mode=ack_mode)
    if flags & 0x0100:
        body += struct.pack(">QQ", producer_id, sequence)
        fields.update(producer_id=str(producer_id), sequence=str(sequence))
    if flags & 0x0040:
        body += s16(key)
        fields["key"] = key.hex()
    for text in (tenant, namespace, stream):
        body += s16(text.encode())
    body += struct.pack(">I", len(payloads)) + b"".join(s32(p) for p in payloads)
    return {"name": name, "layout": "publish", "hex": frame(flags, body).hex(), "fields": fields}


def ack(name, flags, request_id, message=None, code=None, retry=None, reason=None, retry_after_ms=None, owner=None,
        offset=None):
    text = (message or "").encode()
    body = struct.pack(">BQ", 0 if message is None else 1, request_id) + s16(text)
    fields = {"request_id": str(request_id), "ok": message is None}
    if message is not None:
        fields["message"] = message
    if flags & 0x0200:
        body += struct.pack(">HB", code, retry)
        fields.update(code=code, retry=retry)
    if flags & 0x0400:
        body += s16(reason.encode()) + struct.pack(">Q", retry_after_ms)
        fields.update(reason=reason, retry_after_ms=str(retry_after_ms))
    if flags & 0x0080:
        node_id, addr, generation = owner
        body += s16(node_id.encode()) + s16(addr.encode()) + struct.pack(">Q", generation)
        fields["owner"] = {"node_id": node_id, "addr": addr, "generation": str(generation)}
    if flags & 0x1000:
        body += struct.pack(">Q", offset)
        fields["offset"] = str(offset)
    return {"name": name, "layout": "publish_ack", "hex": frame(flags, body).hex(), "fields": fields}


def events(name, flags, payloads, subscription_id=None, base_offset=None, skipped_before=None, publisher=None,
           timestamp_micros=None):
    body = b""
    fields = {"payloads": [p.hex() for p in payloads]}
    if flags & 0x0002:
        body += struct.pack(">Q", subscription_id)
        fields["subscription_id"] = str(subscription_id)
    if flags & 0x0020:
        body += struct.pack(">Q", base_offset)
        fields["base_offset"] = str(base_offset)
    if flags & 0x0800:
        body += struct.pack(">Q", skipped_before)
        fields["skipped_before"] = str(skipped_before)
    if flags & 0x2000:
        body += struct.pack(">B", len(publisher)) + publisher.encode()
        fields["publisher"] = publisher
    body += struct.pack(">I", len(payloads))
    for p in payloads:
        if flags & 0x4000:
            body += struct.pack(">Q", timestamp_micros)
        body += s32(p)
    if flags & 0x4000:
        fields["timestamp_micros"] = str(timestamp_micros)
    return {"name": name, "layout": "events", "hex": frame(flags, body).hex(), "fields": fields}


def frames():
    demo = ("t1", "default", "demo")
    orders = ("t1", "ns", "orders")
    two = [b"a", b"bc"]
    big = M64
    return [
        publish("publish", 0x0001, *demo, [b"hello"]),
        publish("publish keyed", 0x0041, *demo, [b"hello"], key=b"k1"),
        publish("publish acked per batch", 0x0009, *demo, [b"hello"], 7, 2),
        publish("publish acked keyed per message", 0x0049, *demo, [b"hi"], 42, 1, key=b"user-42"),
        publish("publish idempotent", 0x0109, *orders, two, 9, 2, 0xDEADBEEF, 7),
        publish("publish idempotent keyed", 0x0149, *orders, two, 9, 2, 0xDEADBEEF, 7, b"user-1"),
        ack("ack ok", 0x0010, 7),
        ack("ack ok with offset", 0x1010, 7, offset=42),
        ack("ack refused without code", 0x0010, 9, "stream not found"),
        ack("ack refused with code", 0x0210, 9, "stream not found", 3, 2),
        ack("ack refused with detail", 0x0610, 11, "shard moving", 5, 1, "moving", 250),
        ack("ack ok forwarded", 0x0090, 12, owner=("broker-b", "10.0.0.5:5000", 7)),
        ack("ack ok forwarded with offset, no address", 0x1090, 12, owner=("broker-b", "", 7), offset=1000),
        events("events of one subscription", 0x0002, two, 5),
        events("events of one subscription with offset", 0x0022, two, 5, 100),
        events("events shared", 0x0004, two),
        events("events shared with offset", 0x0024, two, None, 100),
        events("events shared after a hole", 0x0824, [b"a"], None, 102, 1),
        events("events shared with publisher", 0x2024, [b"a"], None, 100, None, "alice"),
        events("events shared with timestamp", 0x4024, [b"a"], None, 100, None, None, 1760000000000000),
        events("events shared with everything", 0x6824, two, None, 102, 1, "alice", 1760000000000000),
        # beyond the worked examples of the document
        publish("publish of no records", 0x0009, *demo, [], 1, 2),
        publish("publish of empty records", 0x0001, *demo, [b"", b"", b""]),
        publish("publish with an empty key", 0x0041, *demo, [b"x"], key=b""),
        publish("publish with a binary key", 0x0049, *demo, [b"\x00\xff"], 3, 1, key=b"\x00\xff\x80"),
        publish("publish with the largest integers", 0x0109, *orders, [b"z"], big, 2, big, big),
        publish("publish with names that are not ASCII", 0x0001, "société", "日本", "поток", [b"x"]),
        publish("publish with the longest names", 0x0001, "t" * 255, "n" * 255, "s" * 255, [b"x"]),
        ack("ack refused with empty message", 0x0010, 0, ""),
        ack("ack refused with a code of a later version", 0x0210, 1, "new", 77, 5),
        ack("ack refused with detail, no reason", 0x0610, 1, "busy", 10, 2, "", 40),
        ack("ack refused and forwarded", 0x0690, 1, "busy", 10, 2, "tenant_quota", 9, ("n", "127.0.0.1:1", big)),
        ack("ack ok with the largest offset", 0x1010, big, offset=big),
        events("events of no records", 0x0004, []),
        events("events of one subscription with everything", 0x6822, two, 5, 102, 1, "", big),
        events("events shared with the longest publisher", 0x2004, [b"a"], publisher="p" * 255),
    ]


TNS = '"tenant_id":"t1","namespace":"default","stream":"demo"'
TNC = '"tenant_id":"t1","namespace":"default","cache":"primary"'
TNSG = TNS + ',"shard":0,"group":"workers","request_id":8'

TEXTS = [
    '{"type":"ok"}',
    '{"type":"auth","tenant_id":"t1","token":"demo-token"}',
    '{"type":"auth","tenant_id":"t1","token":"demo-token","client_flags":25}',
    '{"type":"auth","tenant_id":"t1","token":"demo-token","client_flags":25,"client_features":2147483649,'
    '"client_features_hi":1}',
    '{"type":"auth","tenant_id":"t1","token":"demo-token","client_flags":8191,"client_features":2071461887}',
    '{"type":"auth_ok","server_flags":25}',
    '{"type":"auth_ok","server_flags":25,"server_features":2147483649,"server_features_hi":1}',
    '{"type":"auth_ok","server_flags":32767,"server_features":2147483644,"listener_ports":[5000,5001],'
    '"publish_window":256}',
    '{"type":"error","message":"no"}',
    '{"type":"error","message":"unauthorized: token rejected","code":"unauthenticated","retry":"fatal"}',
    '{"type":"error","message":"busy","code":"overloaded","retry":"retry_after",'
    '"detail":{"reason":"tenant_quota","retry_after_ms":40}}',
    '{"type":"error","message":"later","code":"of_a_later_version","retry":"sometimes","detail":{}}',
    '{"type":"unsupported","request_type":"time_travel"}',
    '{"type":"unsupported","request_type":"extension","extension":"x","request_id":4}',
    '{"type":"extension","name":"x","request_id":4,"body":{"a":[1,2.5e3,null,true],"b":"\\u00e9"}}',
    '{"type":"extension","name":"x"}',
    '{"type":"publish",' + TNS + ',"payload":"aGVsbG8="}',
    '{"type":"publish",' + TNS + ',"payload":"","key":"azE=","request_id":1,"ack":"per_message"}',
    '{"type":"publish_batch",' + TNS + ',"payloads":[]}',
    '{"type":"publish_batch",' + TNS + ',"payloads":["YQ==","YmM=",""],"key":"","request_id":18446744073709551615,'
    '"ack":"per_batch"}',
    '{"type":"publish_ok","request_id":1}',
    '{"type":"publish_ok","request_id":1,"offset":18446744073709551615}',
    '{"type":"publish_error","request_id":1,"message":"stream not found","code":"not_found","retry":"retry_after"}',
    '{"type":"subscribe",' + TNS + '}',
    '{"type":"subscribe",' + TNS + ',"subscription_id":3,"start":"latest","shard":2,"queue_capacity":16}',
    '{"type":"subscribe",' + TNS + ',"start":"earliest"}',
    '{"type":"subscribe",' + TNS + ',"start":{"offset":18446744073709551615}}',
    '{"type":"subscribed","subscription_id":1}',
    '{"type":"subscribed","subscription_id":1,"start_offset":10,"live_offset":20,"queue_capacity":512}',
    '{"type":"subscribe_cursor_error","reason":"too_old","requested":1,"available":5}',
    '{"type":"subscribe_cursor_error","reason":"in_future","requested":9,"available":5}',
    '{"type":"event_stream_hello","subscription_id":1}',
    '{"type":"event",' + TNS + ',"payload":"aGk=","offset":0}',
    '{"type":"event_batch",' + TNS + ',"payloads":["YQ==","YmM="],"base_offset":100}',
    '{"type":"shard_moved","subscription_id":1,"resume_from":5,"node_id":"b","addr":"10.0.0.5:5000","generation":7}',
    '{"type":"shard_moved","subscription_id":1,"generation":7}',
    '{"type":"subscription_lagged","subscription_id":1,"resume_from":5}',
    '{"type":"cache_put",' + TNC + ',"key":"demo-key","value":"djE=","ttl_ms":null}',
    '{"type":"cache_put",' + TNC + ',"key":"demo-key","value":"djE=","request_id":1,"ttl_ms":200}',
    '{"type":"cache_ok","request_id":1}',
    '{"type":"cache_get",' + TNC + ',"key":"demo-key","request_id":2}',
    '{"type":"cache_delete",' + TNC + ',"key":"demo-key"}',
    '{"type":"cache_value",' + TNC + ',"key":"demo-key","value":null,"request_id":2}',
    '{"type":"cache_value",' + TNC + ',"key":"demo-key","value":"","request_id":2,"version":9}',
    '{"type":"cache_get",' + TNC + ',"key":"\\"\\\\/\\b\\f\\n\\r\\t\\u0000\\u001f\x7f é 日本 😀"}',
    '{"type":"not_leader","node_id":"b","addr":"10.0.0.5:5000","generation":7}',
    '{"type":"not_leader","node_id":"b","generation":7}',
    '{"type":"topology"}',
    '{"type":"topology_view","brokers":[]}',
    '{"type":"topology_view","brokers":[{"node_id":"a","addr":"10.0.0.4:5000"},{"node_id":"b","addr":"10.0.0.5:5000"}]}',
    '{"type":"stream_shards",' + TNS + ',"request_id":1}',
    '{"type":"stream_shards_view","shards":4,"request_id":1}',
    '{"type":"stream_shards_view","shards":4,"request_id":1,"routing":"jump_hash"}',
    '{"type":"cache_shards",' + TNC + ',"request_id":1}',
    '{"type":"cache_shards_view","shards":0,"request_id":1}',
    '{"type":"shard_owners","tenant_id":"t1","namespace":"default","name":"demo","kind":"stream","request_id":1}',
    '{"type":"shard_owners","tenant_id":"t1","namespace":"default","name":"demo","kind":"cache","request_id":1}',
    '{"type":"shard_owners_view","owners":[],"request_id":1}',
    '{"type":"shard_owners_view","owners":[{"shard":0,"generation":0},{"shard":1,"node_id":"b",'
    '"addr":"10.0.0.5:5000","generation":7,"unavailable":"moving"}],"request_id":1}',
    # numbered and conditional publishes
    '{"type":"producer_init","request_id":1}',
    '{"type":"producer_init_ok","request_id":1,"producer_id":18446744073709551615}',
    '{"type":"publish_idempotent",' + TNS + ',"payloads":["YQ==","YmM="],"request_id":9,"producer_id":3735928559,'
    '"sequence":7}',
    '{"type":"publish_idempotent",' + TNS + ',"payloads":[],"key":"","request_id":9,'
    '"producer_id":18446744073709551615,"sequence":18446744073709551615}',
    '{"type":"publish_if",' + TNS + ',"payloads":["YQ=="],"expected_offset":0,"request_id":3}',
    '{"type":"publish_if",' + TNS + ',"payloads":["YQ=="],"key":"azE=","expected_offset":18446744073709551615,'
    '"request_id":3}',
    '{"type":"publish_refused","request_id":9,"reason":{"sequence_gap":{"expected":4}},"message":"4 comes next"}',
    '{"type":"publish_refused","request_id":9,"reason":"unknown_producer","message":"m"}',
    '{"type":"publish_refused","request_id":9,"reason":"sequence_expired","message":"m"}',
    '{"type":"publish_refused","request_id":9,"reason":"sequence_reused","message":""}',
    '{"type":"publish_refused","request_id":9,"reason":{"not_leader":{"node_id":"b","addr":"10.0.0.5:5000"}},'
    '"message":"m"}',
    '{"type":"publish_refused","request_id":9,"reason":{"not_leader":{"node_id":"b"}},"message":"m"}',
    '{"type":"publish_refused","request_id":9,"reason":{"offset_mismatch":{"tail":18446744073709551615}},'
    '"message":"m"}',
    # reading without a subscription
    '{"type":"offset_for_time",' + TNS + ',"shard":2,"at_micros":1760000000000000,"request_id":4}',
    '{"type":"offset_value","offset":77,"request_id":4}',
    '{"type":"offset_value","request_id":4}',
    '{"type":"stream_read",' + TNS + ',"shard":0,"from":5,"max_records":0,"max_bytes":0,"request_id":4}',
    '{"type":"stream_read",' + TNS + ',"shard":1,"from":5,"end":9,"max_records":100,"max_bytes":4194304,"request_id":4}',
    '{"type":"stream_records","records":[],"next_offset":5,"request_id":4}',
    '{"type":"stream_records","records":[{"offset":5,"payload":"YQ==","timestamp_micros":1760000000000000},'
    '{"offset":7,"payload":"","publisher":"alice","timestamp_micros":0}],"next_offset":8,"request_id":4}',
    # conditional cache writes, watches, counters
    '{"type":"cache_put_if",' + TNC + ',"key":"k","value":"djE=","condition":"absent","request_id":5}',
    '{"type":"cache_put_if",' + TNC + ',"key":"k","value":"","ttl_ms":200,"condition":{"version":18446744073709551615},'
    '"request_id":5}',
    '{"type":"cache_delete_if",' + TNC + ',"key":"k","version":9,"request_id":5}',
    '{"type":"cache_condition_result","applied":true,"version":10,"request_id":5}',
    '{"type":"cache_condition_result","applied":false,"request_id":5}',
    '{"type":"cache_watch",' + TNC + ',"key":"k"}',
    '{"type":"cache_watch",' + TNC + ',"prefix":"","shard":3,"from_offset":0,"subscription_id":8}',
    '{"type":"cache_watch",' + TNC + ',"prefix":"sessions/","retained":true}',
    '{"type":"cache_watch_started","subscription_id":1,"resume_offset":40,"resnapshot":false}',
    '{"type":"cache_watch_started","subscription_id":1,"resume_offset":40,"resnapshot":true,"retained_count":0}',
    '{"type":"cache_event","key":"k","value":"djE=","offset":41,"expires_at_millis":1760000000000}',
    '{"type":"cache_event","key":"","offset":42,"expires_at_millis":0}',
    '{"type":"cache_watch_lagged","resume_from":43}',
    '{"type":"counter_add",' + TNC + ',"key":"hits","delta":-9223372036854775808,"request_id":6}',
    '{"type":"counter_add",' + TNC + ',"key":"hits","delta":9223372036854775807,"request_id":6}',
    '{"type":"counter_get",' + TNC + ',"key":"hits","request_id":6}',
    '{"type":"counter_value","value":-1,"request_id":6}',
    '{"type":"counter_value","request_id":6}',
    # commits
    '{"type":"commit",' + TNS + ',"entity_key":"ZQ==","event":"aGk=","changes":[],"request_id":7}',
    '{"type":"commit",' + TNS + ',"entity_key":"","event":"","changes":[{"op":"put","key":"a","value":"AQ=="},'
    '{"op":"delete","key":"b"},{"op":"put","key":"","value":""}],"request_id":7,"expected_offset":12}',
    '{"type":"commit_ok","request_id":7,"offset":12}',
    '{"type":"state_get",' + TNS + ',"entity_key":"ZQ==","key":"a","request_id":7}',
    '{"type":"state_value","value":"AQ==","version":12,"as_of":13,"request_id":7}',
    '{"type":"state_value","value":null,"request_id":7}',
    # consumer groups
    '{"type":"group_poll",' + TNSG + ',"max_records":32,"wait_ms":0}',
    '{"type":"group_poll",' + TNSG + ',"max_records":4294967295,"wait_ms":5000,"consumer":"worker-1","reclaim":true,'
    '"visibility_ms":30000}',
    '{"type":"group_ack",' + TNSG + ',"offset":5}',
    '{"type":"group_nack",' + TNSG + ',"offset":5}',
    '{"type":"group_nack",' + TNSG + ',"offset":5,"delay_ms":1000,"attempts":2}',
    '{"type":"group_extend",' + TNSG + ',"offset":5,"attempts":1,"extend_ms":30000}',
    '{"type":"group_dead_letter",' + TNSG + ',"offset":5}',
    '{"type":"group_dead_letters",' + TNSG + '}',
    '{"type":"group_discard",' + TNSG + ',"offset":5}',
    '{"type":"group_redrive",' + TNSG + ',"offset":5}',
    '{"type":"group_seek",' + TNSG + ',"start":"earliest"}',
    '{"type":"group_seek",' + TNSG + ',"start":"latest","if_new":true}',
    '{"type":"group_seek",' + TNSG + ',"start":{"offset":18446744073709551615}}',
    '{"type":"group_describe",' + TNSG + '}',
    '{"type":"group_delete",' + TNSG + '}',
    '{"type":"group_records","records":[],"request_id":8}',
    '{"type":"group_records","records":[{"offset":5,"payload":"YQ==","attempts":1},{"offset":3,"payload":"",'
    '"attempts":0,"skipped_before":2,"publisher":"alice","timestamp_micros":0}],"request_id":8}',
    '{"type":"group_dead_letter_list","offsets":[],"request_id":8}',
    '{"type":"group_dead_letter_list","offsets":[0,7,18446744073709551615],"request_id":8}',
    '{"type":"group_extended","visible_ms":30000,"request_id":8}',
    '{"type":"group_position","offset":5,"moved":false,"request_id":8}',
    '{"type":"group_info","committed":5,"tail":9,"in_flight":1,"owed":2,"dead_letters":3,"request_id":8}',
    '{"type":"group_info","tail":9,"in_flight":0,"owed":0,"dead_letters":0,"request_id":8}',
    '{"type":"group_deleted","existed":true,"request_id":8}',
    # inspection
    '{"type":"shard_inspect","tenant_id":"t1","namespace":"default","name":"demo","kind":"stream","shard":3,'
    '"request_id":9}',
    '{"type":"shard_inspect_info","view":{"node_id":"","shards":1,"role":"leader","phase":"active","serving":true},'
    '"request_id":9}',
    '{"type":"shard_inspect_info","view":{"node_id":"a","shards":4,"role":"leader","phase":"fencing","serving":false,'
    '"reason":"fencing","detail":"waiting for b","generation":7,"assignment":{"generation":7,"leader":"a",'
    '"replicas":["b","c"],"draining":true,"successor":"c"},"fence":{"took":[],"pending":["b","c"],"attempts":2,'
    '"retry_in_ms":400},"lease":{"held":true,"remaining_ms":900},"tail":1000,"committed":990,"accepted_generation":7,'
    '"replicas":[{"node_id":"b","role":"follower","next_offset":995,"lag":5,"fence":false,"state":"halted",'
    '"halted":"diverged"},{"node_id":"c","role":"learner","fence":true}]},"request_id":9}',
    '{"type":"shard_inspect_info","view":{"node_id":"a","shards":0,"role":"none","phase":"of_a_later_version",'
    '"serving":false,"assignment":{"generation":0,"leader":"","replicas":[],"draining":false},"fence":{"took":["b"],'
    '"pending":[],"attempts":0},"lease":{"held":false}},"request_id":9}',
    '{"type":"subscriptions_list","request_id":9}',
    '{"type":"subscriptions_list","request_id":9,"filter":{},"limit":1000,"cursor":{"tenant_id":"t1",'
    '"namespace":"default","stream":"demo","shard":3,"subscriber_id":17}}',
    '{"type":"subscriptions_list","request_id":9,"filter":{"tenant_id":"t1","namespace":"default","stream":"demo",'
    '"shard":0,"principal":"p:billing","dropping":false}}',
    '{"type":"subscriptions_list_info","node_id":"","subscriptions":[],"request_id":9}',
    '{"type":"subscriptions_list_info","node_id":"a","subscriptions":[{"tenant_id":"t1","namespace":"default",'
    '"stream":"demo","shard":3,"subscriber_id":17,"subscription_id":9,"connection":42,"peer":"10.0.0.7:51234",'
    '"principal":"p:billing","policy":"drop_new","depth":1024,"capacity":1024,"dropped":3812,"position":1040,'
    '"tail":1048,"age_ms":61000},{"tenant_id":"t1","namespace":"default","stream":"demo","shard":3,'
    '"subscriber_id":18,"policy":"block","depth":0,"capacity":512,"dropped":0,"tail":1048,"age_ms":0}],'
    '"next_cursor":{"tenant_id":"t1","namespace":"default","stream":"demo","shard":3,"subscriber_id":18},'
    '"request_id":9}',
]

ACCEPTED = [
    ("any order, white space, unknown members",
     ' { "x" : [ { "y" : [ ] } , { } , -1.5e-3 , "\\ud83d\\ude00" ] , "request_id" : 1 ,\r\n\t"type" : "cache_ok" , "z" : false } ',
     '{"type":"cache_ok","request_id":1}'),
    ("null is the absence of an optional member",
     '{"type":"subscribe",' + TNS + ',"start":null,"shard":null,"subscription_id":null,"queue_capacity":null}',
     '{"type":"subscribe",' + TNS + '}'),
    ("the last one of a member given twice", '{"type":"cache_ok","request_id":1,"request_id":2}',
     '{"type":"cache_ok","request_id":2}'),
    ("absent ttl_ms", '{"type":"cache_put",' + TNC + ',"key":"k","value":"djE="}',
     '{"type":"cache_put",' + TNC + ',"key":"k","value":"djE=","ttl_ms":null}'),
    ("escaped names and values", '{"\\u0074ype":"cache\\u005fok","request\\u005fid":3}',
     '{"type":"cache_ok","request_id":3}'),
    ("escaped base64", '{"type":"event",' + TNS + ',"payload":"\\/\\/\\/\\u002f"}',
     '{"type":"event",' + TNS + ',"payload":"////"}'),
    ("explicit none and modulo", '{"type":"publish",' + TNS + ',"payload":"","ack":"none"}',
     '{"type":"publish",' + TNS + ',"payload":""}'),
    ("explicit modulo", '{"type":"stream_shards_view","shards":4,"request_id":1,"routing":"modulo"}',
     '{"type":"stream_shards_view","shards":4,"request_id":1}'),
    ("explicit zeros and falses of members that are left out",
     '{"type":"group_nack",' + TNSG + ',"offset":5,"delay_ms":0,"attempts":0}', '{"type":"group_nack",' + TNSG + ',"offset":5}'),
    ("null for members with a default",
     '{"type":"group_poll",' + TNSG + ',"max_records":1,"wait_ms":null,"consumer":null,"reclaim":null,"visibility_ms":null}',
     '{"type":"group_poll",' + TNSG + ',"max_records":1,"wait_ms":0}'),
    ("members with a default left out", '{"type":"stream_read",' + TNS + ',"shard":0,"from":5,"request_id":4}',
     '{"type":"stream_read",' + TNS + ',"shard":0,"from":5,"max_records":0,"max_bytes":0,"request_id":4}'),
    ("a watch that started, without resnapshot", '{"type":"cache_watch_started","subscription_id":1,"resume_offset":4}',
     '{"type":"cache_watch_started","subscription_id":1,"resume_offset":4,"resnapshot":false}'),
    ("a counter that was never written", '{"type":"counter_value","value":null,"request_id":6}',
     '{"type":"counter_value","request_id":6}'),
    ("a change without expiry", '{"type":"cache_event","key":"k","value":null,"offset":4}',
     '{"type":"cache_event","key":"k","offset":4,"expires_at_millis":0}'),
    ("a record without attempts", '{"type":"group_records","request_id":8,"records":[{"payload":"","offset":5}]}',
     '{"type":"group_records","records":[{"offset":5,"payload":"","attempts":0}],"request_id":8}'),
    ("a commit without changes", '{"type":"commit",' + TNS + ',"entity_key":"","event":"","request_id":7}',
     '{"type":"commit",' + TNS + ',"entity_key":"","event":"","changes":[],"request_id":7}'),
    ("a change whose op comes last, and a delete with a value",
     '{"type":"commit",' + TNS + ',"entity_key":"","event":"","request_id":7,"changes":[{"value":"AQ==","key":"a","op":"put"},'
     '{"value":"AQ==","key":"b","op":"delete"},{"op":"delete","key":"c","value":{"x":1}}]}',
     '{"type":"commit",' + TNS + ',"entity_key":"","event":"","changes":[{"op":"put","key":"a","value":"AQ=="},'
     '{"op":"delete","key":"b"},{"op":"delete","key":"c"}],"request_id":7}'),
    ("white space in a reason", '{"type":"publish_refused","request_id":9,"reason": { "sequence_gap" : { "x" : 1 , "expected" : 4 } } ,"message":""}',
     '{"type":"publish_refused","request_id":9,"reason":{"sequence_gap":{"expected":4}},"message":""}'),
    ("no lists in the view of a shard",
     '{"type":"shard_inspect_info","request_id":9,"view":{"node_id":"a","shards":0,"role":"none","phase":"closed","serving":false,'
     '"assignment":{"generation":1,"leader":"b","replicas":null},"fence":{},"lease":null,"replicas":[]}}',
     '{"type":"shard_inspect_info","view":{"node_id":"a","shards":0,"role":"none","phase":"closed","serving":false,'
     '"assignment":{"generation":1,"leader":"b","replicas":[],"draining":false},"fence":{"took":[],"pending":[],"attempts":0}},'
     '"request_id":9}'),
    ("no ports", '{"type":"auth_ok","server_flags":1,"listener_ports":[]}', '{"type":"auth_ok","server_flags":1}'),
]


def refused_json():
    deep = '{"type":"ok","x":' + "[" * 40 + "]" * 40 + "}"
    cases = [
        ("empty payload", "", None), ("no object", "[]", None), ("cut short", '{"type":"ok"', None),
        ("trailing text", '{"type":"ok"} x', None), ("no type", '{"request_id":5}', 5),
        ("type given twice", '{"type":"ok","type":"topology"}', None),
        ("required member missing", '{"request_id":6,"type":"cache_get",' + TNC + "}", 6),
        ("null for a required member", '{"type":"cache_ok","request_id":null}', None),
        ("value missing on a miss", '{"type":"cache_value",' + TNC + ',"key":"k"}', None),
        ("fraction for an integer", '{"type":"cache_ok","request_id":1.0}', None),
        ("exponent for an integer", '{"type":"cache_ok","request_id":1e3}', None),
        ("text for an integer", '{"type":"cache_ok","request_id":"1"}', None),
        ("negative integer", '{"type":"cache_ok","request_id":-1}', None),
        ("minus zero", '{"type":"cache_ok","request_id":-0}', None),
        ("leading zero", '{"type":"cache_ok","request_id":01}', None),
        ("one past u64", '{"type":"cache_ok","request_id":18446744073709551616}', None),
        ("one past u16", '{"type":"auth","tenant_id":"t","token":"x","client_flags":65536}', None),
        ("one past u32", '{"type":"subscribe",' + TNS + ',"shard":4294967296}', None),
        ("base64 without padding", '{"type":"publish","request_id":8,' + TNS + ',"payload":"YQ"}', 8),
        ("base64 of the URL alphabet", '{"type":"publish",' + TNS + ',"payload":"_-8="}', None),
        ("base64 with a space", '{"type":"publish",' + TNS + ',"payload":"YQ= ="}', None),
        ("base64 with a line break", '{"type":"publish",' + TNS + ',"payload":"YWJj\\nZGVm"}', None),
        ("base64 with stray bits", '{"type":"publish",' + TNS + ',"payload":"YR=="}', None),
        ("unknown ack mode", '{"type":"publish",' + TNS + ',"payload":"","ack":"twice"}', None),
        ("unknown start", '{"type":"subscribe",' + TNS + ',"start":"middle"}', None),
        ("start with two members", '{"type":"subscribe",' + TNS + ',"start":{"offset":1,"x":2}}', None),
        ("lone surrogate", '{"type":"extension","name":"\\ud800"}', None),
        ("bad escape", '{"type":"extension","name":"\\x"}', None),
        ("raw control character", '{"type":"extension","name":"\n"}', None),
        ("nested too deep", deep, None), ("trailing comma", '{"type":"ok",}', None),
        ("reason that nobody knows", '{"type":"publish_refused","request_id":9,"reason":"bad_weather","message":""}', 9),
        ("reason without its data", '{"type":"publish_refused","request_id":9,"reason":"sequence_gap","message":""}', 9),
        ("reason with data it does not have",
         '{"type":"publish_refused","request_id":9,"reason":{"unknown_producer":{}},"message":""}', 9),
        ("reason with an empty object", '{"type":"publish_refused","request_id":9,"reason":{},"message":""}', 9),
        ("reason with data that is incomplete",
         '{"type":"publish_refused","request_id":9,"reason":{"offset_mismatch":{}},"message":""}', 9),
        ("two reasons", '{"type":"publish_refused","request_id":9,"reason":{"sequence_gap":{"expected":4},'
         '"offset_mismatch":{"tail":1}},"message":""}', 9),
        ("condition that is none", '{"type":"cache_put_if","request_id":5,' + TNC + ',"key":"k","value":"","condition":"present"}', 5),
        ("condition with another member",
         '{"type":"cache_put_if","request_id":5,' + TNC + ',"key":"k","value":"","condition":{"offset":1}}', 5),
        ("text for a boolean", '{"type":"cache_condition_result","request_id":5,"applied":"true"}', 5),
        ("null for a required boolean", '{"type":"cache_condition_result","request_id":5,"applied":null}', 5),
        ("one past i64", '{"type":"counter_add","request_id":6,' + TNC + ',"key":"k","delta":9223372036854775808}', 6),
        ("one before i64", '{"type":"counter_add","request_id":6,' + TNC + ',"key":"k","delta":-9223372036854775809}', 6),
        ("minus zero for a signed integer", '{"type":"counter_add","request_id":6,' + TNC + ',"key":"k","delta":-0}', 6),
        ("fraction for a signed integer", '{"type":"counter_add","request_id":6,' + TNC + ',"key":"k","delta":-1.0}', 6),
        ("change that is neither put nor delete", '{"type":"commit","request_id":7,' + TNS + ',"entity_key":"","event":"",'
         '"changes":[{"op":"swap","key":"a"}]}', 7),
        ("put without a value", '{"type":"commit","request_id":7,' + TNS + ',"entity_key":"","event":"",'
         '"changes":[{"op":"put","key":"a"}]}', 7),
        ("value missing on a state miss", '{"type":"state_value","request_id":7}', 7),
        ("poll without a group", '{"type":"group_poll","request_id":8,' + TNS + ',"shard":0,"max_records":1}', 8),
        ("seek without a start", '{"type":"group_seek",' + TNSG + '}', 8),
        ("seek to null", '{"type":"group_seek",' + TNSG + ',"start":null}', 8),
        ("dead letters out of order", '{"type":"group_dead_letter_list","request_id":8,"offsets":[7,3]}', 8),
        ("dead letter given twice", '{"type":"group_dead_letter_list","request_id":8,"offsets":[3,3]}', 8),
        ("list of objects given twice", '{"type":"group_records","request_id":8,"records":[],"records":[]}', 8),
        ("filter given twice", '{"type":"subscriptions_list","request_id":9,"filter":{},"filter":{}}', 9),
        ("view that is no object", '{"type":"shard_inspect_info","request_id":9,"view":[]}', 9),
        ("name over the limit", '{"type":"topology_view","brokers":[{"node_id":"' + "n" * 256 + '","addr":""}]}', None),
    ]
    rows = [{"name": n, "from": "client", "stage": "json", "hex": frame(0, t.encode()).hex(), "request_id": r}
            for n, t, r in cases]
    rows.append({"name": "text that is not UTF-8", "from": "client", "stage": "json",
                 "hex": frame(0, b'{"type":"\xff"}').hex(), "request_id": None})
    for typ, request_id in [("time_travel", 3), ("Publish", 4), ("group_poll2", 5), ("auth_error", None)]:
        text = '{"type":"%s","request_id":%s}' % (typ, '"x"' if request_id is None else request_id)
        rows.append({"name": "type " + typ, "from": "client", "stage": "type", "hex": frame(0, text.encode()).hex(),
                     "request_id": request_id})
    return rows


def refused():
    rows = []

    def row(name, side, stage, data, request_id=None):
        rows.append({"name": name, "from": side, "stage": stage, "hex": data.hex(), "request_id": request_id})

    row("internal magic", "client", "header", struct.pack(">IHHI", 0x464C5849, 1, 1, 0))
    row("version 2", "client", "header", struct.pack(">IHHI", 0x464C5831, 2, 0, 2) + b"{}")
    row("version 0", "client", "header", struct.pack(">IHHI", 0x464C5831, 0, 0, 2) + b"{}")
    row("length over 16 MiB", "client", "header", struct.pack(">IHHI", 0x464C5831, 1, 0, 16777217))
    row("length of 4 GiB", "client", "header", struct.pack(">IHHI", 0x464C5831, 1, 1, 0xFFFFFFFF))
    row("reserved bit", "client", "flags", frame(0x8000, b""))
    row("reserved bit on an acked publish", "client", "flags", frame(0x8009, struct.pack(">QB", 31, 2)), 31)
    row("reserved bit on events", "broker", "flags", frame(0x8004, struct.pack(">I", 0)))
    for flags in (0x0008, 0x0040, 0x0101, 0x0100, 0x0002, 0x0010, 0x0005):
        row("flags %04x from a client" % flags, "client", "flags", frame(flags, b""))
    for flags in (0x0001, 0x0006, 0x0020, 0x0804, 0x0410, 0x1210, 0x0014, 0x0080, 0x1000, 0x0030):
        row("flags %04x from a broker" % flags, "broker", "flags", frame(flags, b""))
    names = s16(b"t") + s16(b"n") + s16(b"s")
    row("acked publish cut after the request id", "client", "layout", frame(0x0009, struct.pack(">Q", 17)), 17)
    row("acked publish cut inside the request id", "client", "layout", frame(0x0009, b"\0\0\0"))
    for mode in (0, 3):
        row("ack mode %d" % mode, "client", "layout",
            frame(0x0009, struct.pack(">QB", 18, mode) + names + struct.pack(">I", 0)), 18)
    row("idempotent publish acked per message", "client", "layout",
        frame(0x0109, struct.pack(">QBQQ", 19, 1, 1, 0) + names + struct.pack(">I", 0)), 19)
    row("count of 4 Gi in a tiny body", "client", "layout", frame(0x0001, names + struct.pack(">I", 0xFFFFFFFF)))
    row("count one too high", "client", "layout", frame(0x0001, names + struct.pack(">I", 2) + s32(b"abcd")))
    row("payload longer than the frame", "client", "layout", frame(0x0001, names + struct.pack(">III", 1, 9, 0)))
    row("name that is not UTF-8", "client", "layout", frame(0x0001, s16(b"\xff") + names))
    row("name of 256 bytes", "client", "layout", frame(0x0001, s16(b"t" * 256) + names))
    row("ack with status 2", "broker", "layout", frame(0x0010, struct.pack(">BQH", 2, 1, 0)))
    row("ack ok with a message", "broker", "layout", frame(0x0010, struct.pack(">BQ", 0, 1) + s16(b"x")))
    row("ack ok with a code", "broker", "layout", frame(0x0210, struct.pack(">BQHHB", 0, 1, 0, 3, 1)))
    row("ack refused with an offset", "broker", "layout", frame(0x1010, struct.pack(">BQHQ", 1, 1, 0, 5)))
    row("ack cut short", "broker", "layout", frame(0x0010, struct.pack(">BQ", 0, 1)))
    row("events cut short", "broker", "layout", frame(0x0024, struct.pack(">Q", 1)))
    row("events with a count too high", "broker", "layout", frame(0x0004, struct.pack(">I", 1)))
    row("stamped events with a count too high", "broker", "layout", frame(0x4004, struct.pack(">III", 2, 0, 0) + b"\0" * 12))
    return rows + refused_json()


def key_hash(key):
    h = 0xCBF29CE484222325
    for b in key:
        h = ((h ^ b) * 0x100000001B3) & M64
    h = ((h ^ (h >> 30)) * 0xBF58476D1CE4E5B9) & M64
    h = ((h ^ (h >> 27)) * 0x94D049BB133111EB) & M64
    return h ^ (h >> 31)


def jump(seed, shards):
    b, j = -1, 0
    while j < shards:
        b = j
        seed = (seed * 2862933555777941757 + 1) & M64
        j = int((b + 1) * (float(1 << 31) / float((seed >> 33) + 1)))
    return b


def routing():
    keys = [b"", b"a", b"k0", b"k1", b"user-42", b"order-1001", b"customer-0", b"customer-1", b"customer-2",
            b"customer-4", b"customer-6", b"\x00", b"\x00\xff", "clé".encode(), b"sessions/abc"]
    rows = []
    for key in keys:
        h = key_hash(key)
        rows.append({"key": key.hex(), "hash": "%016x" % h,
                     "modulo": {str(n): h % n for n in (1, 2, 3, 4, 8, 12, 16, 64, 1000)},
                     "jump_hash": {str(n): jump(h, n) for n in (1, 2, 3, 8, 12, 64, 1000)}})
    return rows


def errors():
    classes = ["", "retry", "retry_after", "redirect", "outcome_unknown", "fatal"]
    table = [("unauthenticated", 5), ("forbidden", 5), ("not_found", 2), ("invalid_request", 5),
             ("shard_unavailable", 1), ("not_leader", 3), ("quorum_timeout", 4), ("leadership_lost", 4),
             ("unacknowledged", 4), ("overloaded", 2), ("limit_exceeded", 5), ("draining", 1), ("internal", 4),
             ("storage", 4), ("stale_claim", 1)]
    return [{"number": i + 1, "code": name, "class": classes[c], "class_byte": c} for i, (name, c) in enumerate(table)]


def main():
    out = {
        "about": "FLX1 client protocol, conformance vectors. Written by vectors.py; conventions are described there.",
        "frames": frames(),
        "json": [{"text": t, "hex": frame(0, t.encode()).hex()} for t in TEXTS],
        "accepted": [{"name": n, "text": t, "canonical": c} for n, t, c in ACCEPTED],
        "refused": refused(),
        "routing": routing(),
        "errors": errors(),
    }
    json.dump(out, sys.stdout, ensure_ascii=True, indent=1)
    sys.stdout.write("\n")


main()
