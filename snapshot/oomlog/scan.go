package oomlog

import (
	"bytes"
	"fmt"
	"io"
)

const bufferSize = 256 << 10

// Scan reads a log once and calls f with every out-of-memory message in it, in order. It
// stops at the first error of f or of r and returns it. What is found does not depend on how
// r cuts its data; memory does not grow with the log.
func Scan(r io.Reader, f func(Message) error) error {
	s := scanner{r: r, f: f, buf: make([]byte, bufferSize), line: 1}
	for !s.eof {
		err := s.fill()
		if found := s.search(); found != nil {
			return found
		}
		if err != nil {
			return fmt.Errorf("read log: %w", err)
		}
	}
	return nil
}

// scanner is the state of a Scan: a window on the log that moves on.
type scanner struct {
	r   io.Reader
	f   func(Message) error
	eof bool
	finder

	buf     []byte
	n       int   // bytes in buf
	base    int64 // where buf begins in the log
	pos     int   // anchors before it are done
	floor   int   // end of the last message
	line    int64 // at buf[counted]
	counted int
}

// fill moves what may still be needed to the front of the buffer and reads until it is full.
func (s *scanner) fill() error {
	drop := max(0, s.pos-behind)
	s.count(max(drop, s.counted))
	copy(s.buf, s.buf[drop:s.n])
	s.n -= drop
	s.pos -= drop
	s.counted -= drop
	s.floor = max(0, s.floor-drop)
	s.base += int64(drop)
	for idle := 0; s.n < len(s.buf); {
		k, err := s.r.Read(s.buf[s.n:])
		s.n += k
		switch {
		case err != nil:
			s.eof = true
			if err == io.EOF {
				return nil
			}
			return err
		case k > 0:
			idle = 0
		case idle > 100:
			s.eof = true
			return io.ErrNoProgress
		default:
			idle++
		}
	}
	return nil
}

// count moves the line counter to buf[to].
func (s *scanner) count(to int) {
	s.line += int64(bytes.Count(s.buf[s.counted:to], []byte{'\n'}))
	s.counted = to
}

// search reports the messages whose anchors have all that may belong to them in the buffer.
func (s *scanner) search() error {
	safe := s.n
	if !s.eof {
		safe = s.n - ahead
	}
	for {
		at, kind := next(s.buf[:s.n], s.pos)
		if at >= safe {
			s.pos = max(s.pos, safe)
			return nil
		}
		from := max(s.floor, at-behind, 0)
		raw := s.buf[from:min(s.n, at+ahead)]
		if kind == anchorMemory && !worth(raw, at-from) {
			s.pos = at + 1
			continue
		}
		m, start, end, ok := s.find(raw, at-from, kind)
		if !ok {
			s.pos = at + 1
			continue
		}
		s.count(from + start)
		m.Line, m.Offset = s.line, s.base+int64(from+start)
		s.floor = max(from+end, at+1, from+start+1) // the next message begins behind this one
		s.pos = s.floor
		if err := s.f(m); err != nil {
			return err
		}
	}
}
