// Package hosting holds what a host of shards decides about one of them: when it is brought up, when the files of its incarnations are closed and
// taken out of the way, and for how long one that fails again and again is left alone. It knows no clock, file, or actor.
package hosting
