package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/felixd/felixd/storage/vfs"
)

func TestAFaultFileIsFollowedWhileItChanges(t *testing.T) {
	name := filepath.Join(t.TempDir(), "faults")
	write := func(text string) {
		t.Helper()
		err := os.WriteFile(name+".new", []byte(text), 0o600)
		if err = errors.Join(err, os.Rename(name+".new", name)); err != nil { // who follows it never sees half of it
			t.Fatal(err)
		}
	}
	write("create name=a error=EIO\n")
	if err := checkFaultFile(name); err != nil {
		t.Fatal(err)
	}
	files, follow, err := withFaults(vfs.NewMem(), name, quiet())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := files.Create("a"); !errors.Is(err, syscall.EIO) {
		t.Fatalf("created: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); follow(ctx) }()
	defer func() { cancel(); <-done }()
	until := func(what string, ok func(rules []*vfs.ActiveRule) bool) {
		t.Helper()
		for deadline := time.Now().Add(patience); !ok(files.Rules()); pause(t.Context(), time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s: the rules are %v", what, files.Rules())
			}
		}
	}
	write("syncdir block\nsync delay=1ms\n")
	until("another text", func(r []*vfs.ActiveRule) bool { return len(r) == 2 })
	write("nonsense\n")
	held := make(chan error, 1)
	go func() { held <- files.SyncDir(".") }()
	<-files.Rules()[0].Reached()
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	until("no file", func(r []*vfs.ActiveRule) bool { return len(r) == 0 })
	if err := <-held; err != nil {
		t.Fatal(err)
	}
}

func TestAFaultFileThatSaysNothingIsRefused(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad")
	if err := os.WriteFile(bad, []byte("sync\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{bad, dir, filepath.Join(dir, "none")} {
		if checkFaultFile(name) == nil {
			t.Errorf("%s is taken", name)
		}
	}
	if _, _, err := withFaults(vfs.NewMem(), bad, quiet()); err == nil {
		t.Error("it is followed")
	}
}
