package oomlog

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/snapana/snapana/snapshot"
)

const bufferSize = 256 << 10

// How often a message may be begun to be read, which takes some 5 microseconds: messages take hundreds of bytes.
const (
	freeTries   = 100_000
	bytesPerTry = 80
)

// Scan reads a log once and calls f with every out-of-memory message in it, in order. It
// stops at the first error of f or of r and returns it, and with a *snapshot.FormatError where a log has far more
// beginnings of messages than programs write. What is found does not depend on how
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
	tries int64 // to read a message

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
		if s.tries++; s.tries > freeTries+(s.base+int64(at))/bytesPerTry {
			return &snapshot.FormatError{Offset: s.base + int64(at), Err: snapshot.ErrLimit, Msg: "too many beginnings of " +
				"out-of-memory messages: no program writes such a log"}
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

// anchor is a text that every message has one of.
type anchor int

const (
	anchorMemory   anchor = iota // memory, OutOfMemoryError, cudaErrorMemoryAllocation
	anchorCapacity               // "capacity" of a message without its head
	anchorFailed                 // CUBLAS_STATUS_ALLOC_FAILED and the like
)

// anchors are what next looks for, all of the same length.
var anchors = [...]string{anchorMemory: "emory", anchorCapacity: "capac", anchorFailed: "_FAIL"}

const anchorSize = 5

// steps tells how far a window of anchorSize bytes may move on by its last byte (Horspool's
// method for several texts); after tells the same once a window that ends like an anchor was
// compared. Tried: bytes.Index for each text, 4 times slower on a log without messages.
var steps, after = func() (a, b [256]uint8) {
	for i := range a {
		a[i], b[i] = anchorSize, anchorSize
	}
	for _, x := range anchors {
		for i := range anchorSize {
			c, far := x[i], uint8(anchorSize-1-i)
			a[c] = min(a[c], far)
			if far > 0 {
				b[c] = min(b[c], far)
			}
		}
	}
	return a, b
}()

// next finds the first anchor in buf from pos on; its place is len(buf) when there is none.
func next(buf []byte, pos int) (int, anchor) {
	for i := pos + anchorSize - 1; i < len(buf); {
		b := buf[i]
		if n := steps[b]; n > 0 {
			i += int(n)
			continue
		}
		at := i - anchorSize + 1
		switch string(buf[at : i+1]) {
		case anchors[anchorMemory]:
			if at--; at >= pos && buf[at]|0x20 == 'm' {
				return at, anchorMemory
			}
		case anchors[anchorCapacity]:
			return at, anchorCapacity
		case anchors[anchorFailed]:
			return at, anchorFailed
		}
		i += int(after[b])
	}
	return len(buf), anchorMemory
}

// form is a way in which a message begins.
type form int

const (
	formAllocator form = iota
	formAsync
	formMPS
	formOutside
	formCPU
)

// heads are what comes before an anchor, without blanks and in lower case. Those that are
// loose also stand in prose and in programs, and need more evidence.
var heads = []struct {
	text    string
	form    form
	backend string
	loose   bool
}{
	{"cudaoutof", formAllocator, "cuda", true}, {"cudaoutofthe", formAllocator, "cuda", true},
	{"hipoutof", formAllocator, "hip", true}, {"hipoutofthe", formAllocator, "hip", true},
	{"xpuoutof", formAllocator, "xpu", true}, {"npuoutof", formAllocator, "npu", true},
	{"mpsbackendoutof", formMPS, "mps", true},
	{"exceedallowed", formAsync, "cuda", false},
	{"cudaerror:outof", formOutside, "cuda", true}, {"hiperror:outof", formOutside, "hip", true},
	{"cudadrivererror:outof", formOutside, "cuda", true}, {"hipdrivererror:outof", formOutside, "hip", true},
	{"cudaruntimeerror(2):outof", formOutside, "cuda", false},
	{"cudafailure'outof", formOutside, "cuda", false}, {"cudafailure2'outof", formOutside, "cuda", false},
	{"hipfailure'outof", formOutside, "hip", false},
	{"defaultcpuallocator:can'tallocate", formCPU, "cpu", false},
	{"defaultcpuallocator:notenough", formCPU, "cpu", false},
}

// worth reports quickly whether "memory", the "m" at raw[at], may belong to a message.
func worth(raw []byte, at int) bool {
	if at == 0 {
		return false
	}
	before := raw[:at]
	switch b := before[at-1]; {
	case b == ' ' && at > 1 && isLetter(before[at-2]):
		if endsWith(before[:at-1], words[:]) || endsWith(before[:at-1], []string{" stderr F", " stdout F", "\nf"}) {
			return true
		}
		if before[at-2] != 'm' { // which ends a color
			return false
		}
	case b == 'f': // OutOfMemoryError
		return bytes.HasSuffix(before, []byte("OutOf"))
	case b == 'r': // cudaErrorMemoryAllocation
		return bytes.HasSuffix(before, []byte("cudaError"))
	case b == ',' || b == '-' || b == '_' || b == '/' || b == '.' || b == '=':
		return false
	}
	return decorated(before[max(0, at-160):])
}

// words are those before "memory" in a head.
var words = [...]string{"of", "the", "allowed", "allocate", "enough"}

func endsWith(text []byte, ends []string) bool {
	for _, s := range ends {
		if bytes.HasSuffix(text, []byte(s)) {
			return true
		}
	}
	return false
}

// decorated reports whether the word before "memory" may end a line, or stand before colors
// or markup.
func decorated(before []byte) bool {
	line := before[bytes.LastIndexByte(before, '\n')+1:]
	if !marked(line) {
		above := bytes.TrimRight(before[:len(before)-len(line)], " \t\r\n|│║┃")
		if !marked(above[max(0, len(above)-20):]) {
			return endsWith(above, words[:])
		}
	}
	for _, word := range words {
		for i := 0; ; {
			k := bytes.Index(before[i:], []byte(word))
			if k < 0 {
				break
			}
			if i += k + len(word); i == len(before) || !isWord(before[i]) {
				return true
			}
		}
	}
	return false
}

// marked reports whether text has the start of a color, a tag, an entity or an escape.
func marked(text []byte) bool { return bytes.ContainsAny(text, "\x1b<&\\") }

// stops reports whether a sentence may end here, so that what came is a message by itself.
func (p *parser) stops() bool {
	return p.i >= len(p.text) || strings.IndexByte(".\n'\"`)]<,;:(!\\", p.text[p.i]) >= 0 ||
		p.text[p.i] == ' ' && (p.i+1 == len(p.text) || !isWord(p.text[p.i+1]) ||
			bytes.HasPrefix(p.text[p.i+1:], []byte("at ")))
}

// quoted reports whether a program compares the text with something, or prose quotes it.
func (p *parser) quoted() bool {
	rest := p.text[p.i:]
	return len(rest) > 0 && rest[0] == '`' || len(rest) > 1 && (rest[0] == '"' || rest[0] == '\'') &&
		(bytes.HasPrefix(rest[1:], []byte(" in ")) || bytes.HasPrefix(rest[1:], []byte(" not in ")))
}

// introduced reports whether the text in front of a message is no sentence that goes on.
func introduced(before []byte) bool {
	before = bytes.TrimRight(before, " ")
	return len(before) == 0 || !isWord(before[len(before)-1]) && before[len(before)-1] != ','
}
