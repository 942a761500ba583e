package vfs

import (
	"io/fs"
	"path"
	"strconv"
	"strings"
	"syscall"
	"unicode"
)

// What a full disk and an exhausted quota are called by the system.
const (
	noSpace   = syscall.ENOSPC
	overQuota = syscall.EDQUOT
)

// holderBytes bounds what a lock file says of its holder: a process id, a node's name and an instant fit many times.
const holderBytes = 1024

func quote(name string) string { return strconv.Quote(name) }

// checkName returns a *NameError unless name is one that an FS accepts. Bytes that are no UTF-8 are accepted: a directory may list them.
func checkName(name string) error {
	if name == "." {
		return nil
	}
	if name == "" {
		return &NameError{Name: name, Why: `it is empty; the root is "."`}
	}
	if strings.IndexByte(name, 0) >= 0 {
		return &NameError{Name: name, Why: "it holds a zero byte"}
	}
	for part := range strings.SplitSeq(name, "/") {
		switch part {
		case "":
			return &NameError{Name: name, Why: "it begins or ends with a slash, or holds two in a row"}
		case ".", "..":
			return &NameError{Name: name, Why: "it holds the part " + part + ", and might lead out of the root"}
		}
	}
	return nil
}

// checkChild is checkName for calls that cannot mean the root.
func checkChild(name string) error {
	if name == "." {
		return &NameError{Name: name, Why: "it is the root, which can be neither moved, removed, opened nor locked"}
	}
	return checkName(name)
}

// checkNew is checkName for a name that shall be made: the root is there already.
func checkNew(op, name string) error {
	if name == "." {
		return &fs.PathError{Op: op, Path: name, Err: fs.ErrExist}
	}
	return checkName(name)
}

// parentOf splits a checked name; the parent of a name without a slash is the root.
func parentOf(name string) (dir, base string) { return path.Dir(name), path.Base(name) }

// notRegular refuses to open what is no file.
func notRegular(name string, kind EntryKind) error {
	if kind == Directory {
		return &NameError{Name: name, Why: "it is a directory, not a regular file"}
	}
	return &NameError{Name: name, Why: "it is a link or a special file, not a regular file; links are not followed"}
}

// readableHolder makes what a lock file holds fit for a message.
func readableHolder(b []byte) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(string(b), " ")))
}

// cutHolder bounds what is written into a lock file.
func cutHolder(holder string) string { return holder[:min(len(holder), holderBytes)] }
