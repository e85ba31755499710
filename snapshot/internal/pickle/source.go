package pickle

import (
	"bytes"
	"errors"
	"io"
)

const (
	chunkSize = 1 << 20
	// headroom is kept free in front of each chunk for the unread end of the one before.
	headroom = 64 << 10
	// margin is what the machine may look at past an opcode without asking: every opcode
	// with its argument is shorter, but for long strings, which use take.
	margin = 1 << 10
	// ahead is how many chunks there are: one in use, one that was read, one that is being read.
	ahead = 3
)

// source reads the input ahead in its own goroutine and hands it out as windows.
type source struct {
	buf  []byte // the window, followed by at least margin bytes that may be read as garbage
	end  int    // end of valid data in buf
	base int64  // input offset of buf[0]
	eof  bool   // buf[end] is where the input ends
	err  error  // why it ends, when that is not io.EOF

	full chan chunk
	free chan []byte
}

type chunk struct {
	buf []byte // with headroom in front and margin behind
	n   int
	err error
}

func newSource(r io.Reader) *source {
	s := &source{full: make(chan chunk, ahead), free: make(chan []byte, ahead)}
	for range ahead {
		s.free <- nil // allocated on first use: small inputs need one
	}
	go s.readAhead(r)
	return s
}

func (s *source) readAhead(r io.Reader) {
	for buf := range s.free {
		if buf == nil {
			buf = make([]byte, headroom+chunkSize+margin)
		}
		n, err := io.ReadFull(r, buf[headroom:headroom+chunkSize])
		if s.full <- (chunk{buf, n, err}); err != nil {
			return
		}
	}
}

// close ends the reading goroutine.
func (s *source) close() {
	close(s.free)
	for range s.free { // else it would go on until those are full
	}
}

// next moves the window forward so that it begins with the byte at pos, or where the input ends before
// that, and returns where that byte is now. What lies between pos and the end of the window must fit
// the headroom. It must not be called at the end of the input.
func (s *source) next(pos int) int {
	c := <-s.full
	tail := max(s.end-pos, 0)
	at := headroom - tail
	copy(c.buf[at:headroom], s.buf[s.end-tail:s.end])
	s.base += int64(s.end - headroom)
	if s.buf != nil {
		s.free <- s.buf
	}
	s.buf, s.end = c.buf, headroom+c.n
	if c.err != nil {
		s.eof = true
		if !errors.Is(c.err, io.EOF) && !errors.Is(c.err, io.ErrUnexpectedEOF) {
			s.err = c.err
		}
		clear(s.buf[s.end : s.end+margin])
	}
	return at
}

// take passes over the n bytes from pos on and returns the position after them, and with keep the bytes.
// They are valid until the next call of next or take; it copies only what crosses a window.
func (s *source) take(pos int, n int64, keep bool) (b []byte, next int, ok bool) {
	for int64(s.end-pos) < n {
		window := s.buf[min(pos, s.end):s.end]
		if keep {
			b = append(b, window...)
		}
		if s.eof {
			return b, s.end, false
		}
		n -= int64(len(window))
		pos = s.next(s.end)
	}
	next = pos + int(n)
	if b != nil {
		return append(b, s.buf[pos:next]...), next, true
	}
	return s.buf[pos:next], next, true
}

// line returns a copy of the bytes from pos up to the next newline, and the position after it.
func (s *source) line(pos, limit int) (b []byte, next int, ok bool) {
	for {
		window := s.buf[min(pos, s.end):s.end]
		if i := bytes.IndexByte(window, '\n'); i >= 0 {
			return append(b, window[:i]...), pos + i + 1, true
		}
		b = append(b, window...)
		if s.eof || len(b) > limit {
			return b, s.end, false
		}
		pos = s.next(s.end)
	}
}
