package wire

import (
	"bytes"
	"testing"
)

// Expected: a binary publish costs a walk over its length fields, tens of nanoseconds per record at most; JSON costs a
// pass over every byte and a base64 decode, of the order of 1 ns per byte.

func batchOf64() *Publish {
	p := &Publish{Flags: 0x0009, RequestID: 1, Ack: AckPerBatch, Tenant: []byte("t1"), Namespace: []byte("default"), Stream: []byte("demo"), Count: 64}
	for range p.Count {
		p.Region = AppendPayload(p.Region, bytes.Repeat([]byte("x"), 256))
	}
	return p
}

func BenchmarkDecodePublish64x256(b *testing.B) {
	frame := AppendPublish(nil, batchOf64())
	b.SetBytes(int64(len(frame)))
	b.ReportAllocs()
	var p Publish
	for b.Loop() {
		if err := p.Decode(0x0009, frame[HeaderSize:]); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecodeJSONPublish64x256(b *testing.B) {
	p := batchOf64()
	text := AppendJSON(nil, &PublishBatchMessage{TenantID: "t1", Namespace: "default", Stream: "demo", Records: p.Region, Count: p.Count})
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := DecodeJSON(text); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDecodeCacheGet(b *testing.B) {
	text := []byte(`{"type":"cache_get","tenant_id":"t1","namespace":"default","cache":"primary","key":"demo-key","request_id":2}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := DecodeJSON(text); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncodeCacheValue(b *testing.B) {
	m := &CacheValue{TenantID: "t1", Namespace: "default", Cache: "primary", Key: "demo-key", Value: Some(bytes.Repeat([]byte("v"), 256)), RequestID: Some(uint64(2))}
	buf := make([]byte, 0, 1024)
	b.ReportAllocs()
	for b.Loop() {
		AppendJSONFrame(buf, m)
	}
}

func BenchmarkDecodeCacheValue(b *testing.B) {
	text := AppendJSON(nil, &CacheValue{TenantID: "t1", Namespace: "default", Cache: "primary", Key: "demo-key", Value: Some(bytes.Repeat([]byte("v"), 256)),
		RequestID: Some(uint64(2)), Version: Some(uint64(1234))})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := DecodeJSON(text); err != nil {
			b.Fatal(err)
		}
	}
}
