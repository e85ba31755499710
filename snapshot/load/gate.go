package load

import (
	"errors"
	"io"
	"sync"
)

// gate stands at the end of a chain of readers. The pickle decoder reads ahead in a goroutine
// of its own, which may still be at it when decoding is over: once the gate is closed nobody
// is inside the chain, and nobody enters it.
type gate struct {
	mu      sync.Mutex
	r       io.Reader
	closed  bool
	partial bool  // take a fault for the end of the data, to keep what came before
	err     error // that fault
}

func (g *gate) Read(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return 0, io.EOF
	}
	n, err := g.r.Read(p)
	if g.partial && err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		g.err, err = err, io.EOF
	}
	return n, err
}

func (g *gate) close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	return g.err
}
