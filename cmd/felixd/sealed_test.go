package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
)

// A record is written once: the files that are full stay the same files with the same bytes, whatever is published later, over a restart.
//
// mission 276
func TestFullSegmentsAreNeverWrittenAgain(t *testing.T) {
	r := start(t, t.TempDir(), "--durable-segment-bytes", "4096")
	r.must(t, "POST", devStreamsPath, `{"stream":"kept","durable":true}`)
	fill := func(n int) {
		for i := range n {
			publishOnce(t, r, "kept", fmt.Sprint(i, " ", strings.Repeat("x", 3000)))
		}
	}
	fill(4)
	full := segments(t, r.dir, "kept")
	full = full[:len(full)-1]
	if len(full) < 3 {
		t.Fatalf("%d files are full", len(full))
	}
	look := func(name string) (os.FileInfo, []byte) {
		t.Helper()
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return info, text
	}
	infos, texts := make([]os.FileInfo, len(full)), make([][]byte, len(full))
	for i, name := range full {
		infos[i], texts[i] = look(name)
	}
	fill(3)
	if code := r.stop(t); code != exitOK {
		t.Fatalf("exit code %d", code)
	}
	r = start(t, r.dir)
	fill(1)
	if code := r.stop(t); code != exitOK {
		t.Fatalf("exit code %d", code)
	}
	for i, name := range full {
		info, text := look(name)
		if !os.SameFile(info, infos[i]) || !info.ModTime().Equal(infos[i].ModTime()) || !bytes.Equal(text, texts[i]) {
			t.Errorf("%s was written again", name)
		}
	}
}
