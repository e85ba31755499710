// Package stage tells who waits for an analysis what it is at.
package stage

import "context"

// Stage is a part of the work that can take long.
type Stage string

// The stages of an analysis, in order; some go on at once.
const (
	Rebuilding Stage = "rebuilding" // memory over time
	Analyzing  Stage = "analyzing"
	Replaying  Stage = "replaying" // the run under other settings, of which some are done
	Searching  Stage = "searching" // for the smallest device, setting by setting
	Trying     Stage = "trying"    // changes of the program, of which some are done
)

// Watcher is told which stage has begun, and with every part that is done of those to be counted, which and how many
// there are; total is 0 where nothing is counted. Several goroutines call it at once.
type Watcher func(s Stage, done, total int)

type key struct{}

// With gives a context whose work a watcher follows.
func With(ctx context.Context, w Watcher) context.Context { return context.WithValue(ctx, key{}, w) }

// At tells the watcher of a context, if it has one.
func At(ctx context.Context, s Stage, done, total int) {
	if w, ok := ctx.Value(key{}).(Watcher); ok {
		w(s, done, total)
	}
}
