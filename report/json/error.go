package json

import (
	"bytes"

	"github.com/snapana/snapana/report/failure"
)

// errorDoc is why a command failed.
type errorDoc struct {
	Error failure.Failure `json:"error"`
}

// WithError adds an error to the document of a command that failed after it had its answer. What is no whole document,
// or nothing, gives way to one with the error alone.
func WithError(doc []byte, f failure.Failure) []byte {
	var b bytes.Buffer
	encode(&b, "{", errorDoc{f}) // a Buffer takes all, and a Failure can be encoded
	rest, ok := bytes.CutSuffix(doc, []byte("\n}\n"))
	if !ok {
		return append([]byte("{\n \"schema\": \""+errorSchema+"\","), b.Bytes()[1:]...)
	}
	return append(append(rest[:len(rest):len(rest)], ','), b.Bytes()[1:]...)
}
