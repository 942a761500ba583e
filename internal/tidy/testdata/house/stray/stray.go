// Package stray is in no table.
package stray
