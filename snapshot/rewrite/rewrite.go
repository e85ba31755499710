// Package rewrite changes the texts of a file and leaves all else as it is: pickles opcode by opcode, JSON token by
// token, MessagePack value by value, other texts line by line. A file is never decoded and written anew, so that what
// nobody thought of keeps its form, and it never is in memory as a whole.
//
// Who calls decides what becomes of a text, by its Place. The input is hostile: what does not belong in data, such as
// a pickled call, is refused and never copied.
package rewrite

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/snapana/snapana/snapshot"
)

// Place is where a text stands in nested dicts and lists.
type Place struct {
	// Key is that of the dict's entry whose value the text is, or a list around it. Above is the key of the entry in
	// which that dict is, in a list or not. Both are "" at the top, and as the file has them, not as they are written.
	Key, Above string
	// IsKey is set where the text is a key itself; Key then is "".
	IsKey bool
}

// Texts says what becomes of the texts of a file. Its functions give the same for the same at all times.
type Texts struct {
	// Text is called for all texts but those of Name.
	Text func(at Place, text string) string
	// Name is called for the names of functions in frames, with the file of the frame, "" where it has none.
	Name func(name, file string) string
	// Line is called for lines of plain text, without what ends them.
	Line func(line string) string
	// Resized is told how many bytes a pickle had and has now. Size gives for how many a snapshot had, as a .snapana file
	// says, how many it has now; not ok leaves them out. Both may be nil: then nothing is known of any.
	Resized func(was, now int64)
	Size    func(was int64) (now int64, ok bool)
}

const (
	mostText  = 16 << 20 // bytes of one text
	flushAt   = 128 << 10
	mostDepth = 1 << 16
	atOnce    = 2 << 10 // bytes that are looked at where they were read to
)

// sink is what was written, in which a piece may be missing that is not known yet: the name of a function, until the
// file of its frame is.
type sink struct {
	w      io.Writer
	out    []byte
	hole   bool
	at     int // in out
	fill   func(file string) []byte
	owner  int // who the hole belongs to: a place on the stack
	total  int64
	failed error
}

// leave leaves a hole at the end.
func (s *sink) leave(owner int, fill func(file string) []byte) {
	s.close("")
	s.hole, s.at, s.owner, s.fill = true, len(s.out), owner, fill
}

// close fills the hole, if there is one.
func (s *sink) close(file string) {
	if !s.hole {
		return
	}
	s.hole = false
	piece := s.fill(file)
	tail := len(s.out) - s.at
	s.out = append(s.out, piece...)
	copy(s.out[s.at+len(piece):], s.out[s.at:s.at+tail])
	copy(s.out[s.at:], piece)
	s.fill = nil
}

// flush writes what is complete, all of it where it must.
func (s *sink) flush(all bool) error {
	if all {
		s.close("")
	}
	if s.failed == nil && !s.hole && (all || len(s.out) >= flushAt) {
		_, s.failed = s.w.Write(s.out)
		s.total += int64(len(s.out))
		s.out = s.out[:0]
	}
	return s.failed
}

// isName reports whether a text is the name of a function in a frame.
func isName(p Place) bool { return p.Key == "name" && p.Above == "frames" && !p.IsKey }

// isFile reports whether a text is the file of a frame.
func isFile(p Place) bool { return p.Key == "filename" && p.Above == "frames" && !p.IsKey }

// from reads input and knows how far it is.
type from struct {
	r   *bufio.Reader
	win []byte // what r has at hand
	at  int    // how much of it was read
	off int64  // of its beginning
	buf []byte
}

func newFrom(r io.Reader) *from {
	br, ok := r.(*bufio.Reader)
	if !ok || br.Size() < 2*atOnce {
		br = bufio.NewReaderSize(r, 1<<16)
	}
	return &from{r: br}
}

// settle makes r stand where reading does, so that it can be used itself.
func (f *from) settle() {
	f.r.Discard(f.at)
	f.off += int64(f.at)
	f.win, f.at = nil, 0
}

func (f *from) offset() int64 { return f.off + int64(f.at) }

// need makes n bytes be at hand, no more than atOnce.
func (f *from) need(n int) error {
	f.settle()
	if b, err := f.r.Peek(n); len(b) < n {
		return err
	}
	f.win, _ = f.r.Peek(f.r.Buffered())
	return nil
}

// peek is what comes, n bytes of it or less at the end, which ends what take gave.
func (f *from) peek(n int) []byte {
	if len(f.win)-f.at < n {
		f.settle()
		f.r.Peek(n)
		f.win, _ = f.r.Peek(f.r.Buffered())
	}
	return f.win[f.at:min(f.at+n, len(f.win))]
}

func (f *from) byte() (byte, error) {
	if f.at == len(f.win) {
		if err := f.need(1); err != nil {
			return 0, err
		}
	}
	f.at++
	return f.win[f.at-1], nil
}

// take reads n bytes, which are valid until the next call.
func (f *from) take(n uint64) ([]byte, error) {
	if n <= uint64(len(f.win)-f.at) {
		f.at += int(n)
		return f.win[f.at-int(n) : f.at], nil
	}
	if n > mostText {
		return nil, f.fault(snapshot.ErrLimit, "has a text of %d bytes; no more than %d are rewritten", n, mostText)
	}
	if n <= atOnce {
		if err := f.need(int(n)); err != nil {
			return nil, f.cut(err)
		}
		f.at = int(n)
		return f.win[:n], nil
	}
	f.settle()
	f.buf = f.buf[:0]
	for have := 0; have < int(n); have = len(f.buf) {
		step := min(int(n)-have, 1<<20) // no more than was there, and a mebibyte
		if cap(f.buf) < have+step {
			f.buf = append(make([]byte, 0, 2*(have+step)), f.buf...)
		}
		k, err := io.ReadFull(f.r, f.buf[have:have+step])
		f.buf = f.buf[:have+k]
		f.off += int64(k)
		if err != nil {
			return nil, f.cut(err)
		}
	}
	return f.buf, nil
}

// line reads up to a line's end, which it leaves out.
func (f *from) line() ([]byte, error) {
	f.settle()
	f.buf = f.buf[:0]
	for {
		piece, err := f.r.ReadSlice('\n')
		f.buf = append(f.buf, piece...)
		f.off += int64(len(piece))
		switch {
		case err == nil:
			return f.buf[:len(f.buf)-1], nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, f.cut(err)
		case len(f.buf) > mostText:
			return nil, f.fault(snapshot.ErrLimit, "has a line of more than %d bytes", mostText)
		}
	}
}

// cut makes an error of the end of the input.
func (f *from) cut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (f *from) fault(class error, format string, args ...any) error {
	return &snapshot.FormatError{Offset: max(f.offset()-1, 0), Msg: fmt.Sprintf(format, args...), Err: class}
}
