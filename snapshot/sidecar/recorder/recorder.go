// Package recorder holds the program that writes .snapana files inside a PyTorch process: one Python
// file, which users copy to where they train. The format it writes is ../FORMAT.md.
package recorder

import (
	_ "embed"

	"github.com/snapana/snapana/snapshot/carried"
)

//go:embed snapana_recorder.py
var source string

// Source is snapana_recorder.py: Python 3.8 to 3.14, PyTorch 1.13 to 2.14, standard library only.
func Source() []byte { return carried.Bytes(source) }
