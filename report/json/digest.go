package json

import (
	"io"

	"github.com/snapana/snapana/report/failure"
)

// Digests is what came of making digests.
type Digests struct {
	Written int        `json:"written"` // those of unreadable files left out
	Skipped int        `json:"skipped"` // there already
	Unread  int        `json:"unreadable"`
	Digests []Digested `json:"digests"`
}

// Digested is one file of which a digest was made.
type Digested struct {
	File    string       `json:"file"`           // as it was named
	Path    string       `json:"path"`           // of the digest, "" where one was there already or there is no such file
	Bytes   int          `json:"bytes"`          // of the digest
	Skipped bool         `json:"skipped"`        // there was one already
	Fault   string       `json:"fault"`          // why the file could not be read, "" when it could
	Code    failure.Code `json:"code,omitempty"` // of the fault
}

// Tell says why the file could not be read, in these words.
func (d *Digested) Tell(err error, fault string) {
	d.Fault, d.Code = fault, failure.KindOf(err).Code
}

// Add adds one, and counts it.
func (d *Digests) Add(one Digested) {
	switch {
	case one.Fault != "":
		d.Unread++
	case one.Skipped:
		d.Skipped++
	default:
		d.Written++
	}
	d.Digests = append(d.Digests, one)
}

// WriteDigests writes what came of making digests.
func WriteDigests(w io.Writer, d *Digests) error { return write(w, digestsSchema, d) }
