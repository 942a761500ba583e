// Package third stands for a module of somebody else.
package third

// Answer is something to import.
const Answer = 42
