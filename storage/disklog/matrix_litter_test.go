package disklog_test

import (
	iofs "io/fs"
	"os"
	"path/filepath"
	"testing"
)

// stray is a name that somebody else made, and what it was.
type stray struct {
	name    string
	mode    iofs.FileMode
	content string // of a file, or where a link points
}

// changed says how it is not as it was; "" if it is.
func (s stray) changed() string {
	info, err := os.Lstat(s.name)
	if err != nil {
		return err.Error()
	}
	if info.Mode().Type() != s.mode {
		return "it is something else now"
	}
	content := ""
	switch {
	case s.mode == iofs.ModeSymlink:
		content, err = os.Readlink(s.name)
	case s.mode.IsRegular():
		var b []byte
		b, err = os.ReadFile(s.name)
		content = string(b)
	}
	if err != nil || content != s.content {
		return "its content changed"
	}
	return ""
}

// litter makes names in a directory that are not of a store: one for each way a name may mislead.
func litter(t *testing.T, dir, outside string) (all []stray) {
	t.Helper()
	target := filepath.Join(outside, "target")
	if err := os.WriteFile(target, []byte("not ours"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"lost+found", "00000000000000000099.log"} {
		name := filepath.Join(dir, d)
		if err := os.Mkdir(name, 0o700); err != nil {
			t.Fatal(err)
		}
		all = append(all, stray{name: name, mode: iofs.ModeDir})
	}
	for _, f := range []string{".hidden", ".tmp", "7.log", "name\xff\xfe", "notes.txt", "notes.tmp"} {
		name := filepath.Join(dir, f)
		if err := os.WriteFile(name, []byte(f), 0o600); err != nil {
			t.Fatal(err)
		}
		all = append(all, stray{name: name, content: f})
	}
	for _, l := range []string{"00000000000000000098.log", "elsewhere"} {
		name := filepath.Join(dir, l)
		if err := os.Symlink(target, name); err != nil {
			t.Fatal(err)
		}
		all = append(all, stray{name: name, mode: iofs.ModeSymlink, content: target})
	}
	return all
}

// iofsOf is a directory of the machine, read-only.
func iofsOf(dir string) iofs.FS { return os.DirFS(dir) }
