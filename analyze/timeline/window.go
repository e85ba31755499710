package timeline

import (
	"fmt"

	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/snapshot"
)

// Window is the window that the trace is of the file's, nil where it is all of it.
func (t *Timeline) Window() *snapshot.WindowTrace { return t.window }

// WindowWords says which events of a file's trace a window has: "events 1 000 to 1 999 of 13 000 000".
func WindowWords(w *snapshot.WindowTrace) string {
	of := units.Count(w.Of)
	switch w.Events {
	case 0:
		return "none of " + units.Plural(w.Of, "event")
	case 1:
		return fmt.Sprintf("event %s of %s", units.Count(w.First), of)
	}
	return fmt.Sprintf("events %s to %s of %s", units.Count(w.First), units.Count(w.First+w.Events-1), of)
}
