// Package model holds the metadata records of the control plane and the rules that make one valid: tenants,
// namespaces, streams and caches, the bodies that create and patch them, and the errors that say what is wrong.
//
// The package is pure. It has no clock, no randomness of its own, no goroutine and no state; whatever is drawn (an
// incarnation, for one) comes from a source the caller hands in. Records are plain values that own their memory:
// copying one copies everything, and == compares whole records.
//
// Two forms of each resource exist on purpose. A Spec is what somebody asked for, where absent and zero differ; a
// record is what is stored, where every field has its final value. Spec.Record is the only way from one to the other.
package model
