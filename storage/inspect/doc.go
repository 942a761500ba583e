// Package inspect is what an operator can see and do about the logs of a store that no process has open: Inspect reads and tells, Repair
// cuts or empties one log and keeps aside what it takes away. Both decide with the very plan that a start makes (segment.NewPlan), so
// that they say what a start would do.
//
// Guarantees, each with a test:
//   - Inspect changes nothing, and refuses a store that is in use;
//   - Repair changes nothing without RepairOptions.Yes, and with it removes no byte of a record before a copy of it is durable below
//     salvaged/;
//   - a Repair that is interrupted at any point can be run again, and what it left opens or refuses, and never opens with less than
//     the operator allowed to lose.
package inspect
