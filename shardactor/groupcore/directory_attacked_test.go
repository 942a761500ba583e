package groupcore

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/felixd/felixd/wire/id"
)

func heapNow() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// A group that has had many keys and has few takes what few take: how many there were is counted no longer.
func TestADirectoryKeepsNoRoomForKeysThatAreGone(t *testing.T) {
	const groups, keys = 20, 20_000
	d, before := NewDirectory(), heapNow()
	for g := range groups {
		name := fmt.Sprint("g", g)
		for o := range id.Offset(keys) {
			d.Put(AppendKey(nil, name, KindDead, o), nil)
		}
		for o := range id.Offset(keys - 1) {
			d.Delete(AppendKey(nil, name, KindDead, o))
		}
	}
	after := heapNow()
	runtime.KeepAlive(d)
	per := (int64(after) - int64(before)) / groups
	if per > KeptGroupBytes {
		t.Errorf("%d bytes for each group of one key, and %d are counted", per, KeptGroupBytes)
	}
}
