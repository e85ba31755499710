package snapshot

import "slices"

// Window says that the traces are a part of those of the file. Segments and blocks are the state at the window's end,
// rebuilt where the file goes on behind it.
type Window struct {
	From   string        `json:"from"` // as it was asked for
	To     string        `json:"to"`
	Traces []WindowTrace `json:"traces"` // by device
}

// AtEnd reports whether the window reaches the end of every trace.
func (w *Window) AtEnd() bool {
	return !slices.ContainsFunc(w.Traces, func(t WindowTrace) bool { return !t.AtEnd() })
}

// WindowTrace is where the window of one device lies in its trace, and what the events outside of it tell.
type WindowTrace struct {
	First  int `json:"first_event"` // number in the file of the first event
	Events int `json:"events"`
	Of     int `json:"of"` // events that the file has

	// Older are the blocks that are live as the window begins, by address.
	Older []OlderBlock `json:"-"`
	// Seen has a bit for each Action that any event of the file has.
	Seen uint32 `json:"-"`
	// Inferred says that the file's trace begins with memory, Blank that it begins with none, in use or not, Young that
	// some of what it begins with is newer than it if events were left out, Resized that its times go back.
	Inferred, Blank, Young, Resized bool `json:"-"`
	// Muted says that a block was freed without free_requested, Hushed that so was one from before the trace, or it waited.
	Muted, Hushed bool `json:"-"`
	// Residual is how many active bytes the whole trace, rebuilt, leads to beyond those of the file's own state. The
	// others count what contradicts itself outside of the window.
	Residual                     int64 `json:"-"`
	Unmatched, Overlaps, Outside int64 `json:"-"`
}

// OlderBlock is a block that is older than the window.
type OlderBlock struct {
	Address         uint64
	Size, Requested int64
	Stack           StackID
	Waits           bool // it was freed, and waits for another stream
}

// AtEnd reports whether the window reaches the end of the trace.
func (w *WindowTrace) AtEnd() bool { return w.First+w.Events == w.Of }

// WindowOf is the window of a device, nil where the trace is that of the file.
func (s *Snapshot) WindowOf(device int) *WindowTrace {
	if s.Window == nil || device < 0 || device >= len(s.Window.Traces) {
		return nil
	}
	return &s.Window.Traces[device]
}
