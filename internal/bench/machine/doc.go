// Package machine reads what a measurement needs to know of the machine and of its own process: CPU time, the CPUs a process may
// run on, and the facts that a reader of figures asks for first. What a system does not tell is an error, never a zero.
package machine
