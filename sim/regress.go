package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Regression is a seed that failed once, with a note of why. A change of the simulation gives the seed another story, so the note says
// which test of the product keeps the case besides.
type Regression struct {
	Seed uint64
	Note string
}

// keep writes a seed's file into the folder.
func keep(folder string, r Regression) (path string, err error) {
	path = filepath.Join(folder, fmt.Sprintf("%d.txt", r.Seed))
	return path, os.WriteFile(path, fmt.Appendf(nil, "seed %d\n%s\n", r.Seed, strings.TrimSpace(r.Note)), 0o644)
}

// kept reads every file of the folder, in the order of their names.
func kept(folder string) (list []Regression, err error) {
	names, err := filepath.Glob(filepath.Join(folder, "*.txt")) // sorted
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", folder, err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read a kept seed: %w", err)
		}
		first, note, _ := strings.Cut(string(text), "\n")
		seed, err := strconv.ParseUint(strings.TrimPrefix(first, "seed "), 10, 64)
		if err != nil || strings.TrimSpace(note) == "" {
			return nil, fmt.Errorf("read %s: want a line \"seed N\" and then a note, got %q", name, text)
		}
		list = append(list, Regression{Seed: seed, Note: strings.TrimSpace(note)})
	}
	return list, nil
}
