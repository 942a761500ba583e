// Package deep is reached through a module of somebody else.
package deep

// Answer is something to import.
const Answer = 43
