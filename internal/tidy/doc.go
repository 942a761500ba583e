// Package tidy makes the architecture a test. It loads a module with its types and offers one function for each house rule;
// every function returns findings that say where, what, why it matters and what to do.
//
// The rules are judged by types, not by text: a renamed import, a dot import, a method value or a type alias does not hide
// anything from them. What applies to which package of felixd is written in the root's tidy_test.go; this package knows no
// package by name.
//
// Go files are judged as the machine that runs the test would build them; files for other systems take part only in the rules
// about sources (Sleeps, LongFiles).
package tidy
