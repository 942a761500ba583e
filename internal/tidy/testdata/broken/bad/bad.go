// Package bad does not compile.
package bad

var count int = "three"
