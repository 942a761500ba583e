// Package bench measures a broker and its raw peer side by side: load generators, histograms, rounds and reports.
//
// What a figure of it stands on:
//
//   - A trial is one stretch on one side: connections are made, the load runs, the warm-up is not counted, and the measured stretch is
//     counted between two instants that all its streams share. What was begun in the stretch is followed to its end.
//   - A rate counts what the server has answered, or what subscribers have received; never what was merely sent.
//   - A closed loop sends again when an answer came: its latency hides waits that kept it from sending, and it is labelled so. An open
//     loop sends at fixed times, whatever the answers do, and counts from the time at which a request was due.
//   - An Experiment repeats its cases in turn (A, B, A, B, ...), compares the cases of one round with each other, and reports the median
//     of the rounds with the smallest and the largest.
//   - What was refused, lost or repeated is counted and reported, and what could not be read is said to be unknown.
//
// Both sides run through the same code from the schedule to the histogram; they differ in the Lane, Subscriber or Caller alone.
package bench
