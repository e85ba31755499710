package pickle

import (
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
	stop chan struct{}
}

type chunk struct {
	buf []byte // with headroom in front and margin behind
	n   int
	err error
}

func newSource(r io.Reader) *source {
	s := &source{full: make(chan chunk, 1), free: make(chan []byte, 3), stop: make(chan struct{})}
	for range cap(s.free) {
		s.free <- nil // allocated on first use: small inputs need one
	}
	go s.readAhead(r)
	return s
}

func (s *source) readAhead(r io.Reader) {
	defer close(s.full)
	for {
		var buf []byte
		select {
		case buf = <-s.free:
		case <-s.stop:
			return
		}
		if buf == nil {
			buf = make([]byte, headroom+chunkSize+margin)
		}
		n, err := io.ReadFull(r, buf[headroom:headroom+chunkSize])
		if errors.Is(err, io.ErrUnexpectedEOF) {
			err = io.EOF
		}
		select {
		case s.full <- chunk{buf, n, err}:
		case <-s.stop:
			return
		}
		if err != nil {
			return
		}
	}
}

// close ends the reading goroutine.
func (s *source) close() { close(s.stop) }

// next moves the window forward so that it begins with the byte at pos, and returns where
// that byte is now. What lies between pos and the end of the window must fit the headroom.
func (s *source) next(pos int) int {
	if s.eof {
		return pos
	}
	c, ok := <-s.full
	if !ok {
		s.eof = true
		return pos
	}
	tail := s.end - pos
	if tail < 0 {
		tail = 0 // the opcode at pos is not in this window: its argument was cut
	}
	at := headroom - tail
	copy(c.buf[at:headroom], s.buf[s.end-tail:s.end])
	base := s.base + int64(s.end-tail)
	if s.buf != nil {
		s.free <- s.buf
	}
	s.buf, s.base = c.buf, base-int64(at)
	s.end = headroom + c.n
	if c.err != nil {
		s.eof = true
		if !errors.Is(c.err, io.EOF) {
			s.err = c.err
		}
		clear(s.buf[s.end : s.end+margin])
	}
	return at
}

// take returns the n bytes from pos on and the position after them. The bytes are valid
// until the next call of next or take. It copies only what crosses a window.
func (s *source) take(pos int, n int64) ([]byte, int, bool) {
	if int64(s.end-pos) >= n {
		return s.buf[pos : pos+int(n)], pos + int(n), true
	}
	out := append([]byte(nil), s.buf[min(pos, s.end):s.end]...)
	for {
		if s.eof {
			return out, s.end, false
		}
		at := s.next(s.end)
		need := n - int64(len(out))
		if int64(s.end-at) >= need {
			return append(out, s.buf[at:at+int(need)]...), at + int(need), true
		}
		out = append(out, s.buf[at:s.end]...)
	}
}

// skip is take without keeping the bytes.
func (s *source) skip(pos int, n int64) (int, bool) {
	for int64(s.end-pos) < n {
		n -= int64(s.end - pos)
		if s.eof {
			return s.end, false
		}
		pos = s.next(s.end)
	}
	return pos + int(n), true
}

// line returns the bytes from pos up to the next newline, and the position after it.
func (s *source) line(pos, limit int) ([]byte, int, bool) {
	var out []byte
	for {
		for i := pos; i < s.end; i++ {
			if s.buf[i] == '\n' {
				if out == nil {
					return s.buf[pos:i], i + 1, true
				}
				return append(out, s.buf[pos:i]...), i + 1, true
			}
		}
		out = append(out, s.buf[min(pos, s.end):s.end]...)
		if s.eof || len(out) > limit {
			return out, s.end, false
		}
		pos = s.next(s.end)
	}
}
