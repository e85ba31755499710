package memstats

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/input"
	"github.com/snapana/snapana/snapshot/internal/pickle"
	"github.com/snapana/snapana/snapshot/internal/plain"
	"github.com/snapana/snapana/snapshot/internal/unpack"
)

// Options steer Open. The zero value is usable.
type Options struct {
	// MaxBytes caps the size of the file, unpacked, as in load.Options.
	MaxBytes int64
}

// Open reads the file at path, "-" for stdin, as it is or packed in gzip, zstd, xz, bzip2 or zip,
// and hands what is in it to h. A file that holds nothing of what is read here is refused with a
// *snapshot.FormatError that says what it is. When ctx is done it stops with ctx.Err().
func Open(ctx context.Context, path string, stdin io.Reader, opt Options, h Handler) (*Info, error) {
	if path == "-" {
		path = "stdin"
	} else {
		stdin = nil
	}
	var info *Info
	err := unpack.Read(ctx, stdin, path, unpack.Options{MaxBytes: opt.MaxBytes}, func(in *unpack.Input) error {
		i, err := read(in.Capped(), h)
		if err == nil {
			i.Name, i.Container = input.Base(ctx, path), append(in.Containers, i.Container...)
			info = i
		}
		return err
	})
	return info, err
}

// read reads one file that is not packed. How it begins says what it is.
func read(in io.Reader, h Handler) (*Info, error) {
	cut := &ending{r: in}
	br := bufio.NewReaderSize(cut, maxLine)
	head, err := br.Peek(4 << 10)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	r := &reader{h: h, keys: make(keys)}
	var read func(*bufio.Reader) error
	if r.format, read = r.sniff(head); read == nil {
		return nil, &snapshot.FormatError{Offset: -1, Msg: r.format, Err: snapshot.ErrNotSnapshot}
	}
	if err := read(br); err != nil {
		return nil, err
	}
	if cut.early && r.info.Cut == nil {
		r.info.Cut = &Fault{Offset: -1, Msg: "the compressed data ends early"}
	}
	if r.info.Samples+r.info.Readings == 0 {
		return nil, r.nothing(head)
	}
	if r.lines {
		r.format = "JSON lines"
	}
	r.info.Container = []string{r.format}
	return &r.info, nil
}

// ending lets compressed data that is cut off end like any other, and remembers it.
type ending struct {
	r     io.Reader
	early bool
}

func (e *ending) Read(p []byte) (int, error) {
	n, err := e.r.Read(p)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		e.early, err = true, io.EOF
	}
	return n, err
}

var (
	textPickle = regexp.MustCompile(`^(\(+[dl]p\d|ccollections\nOrderedDict\n|[\]}][qr(.])`)
	textValue  = regexp.MustCompile(`^(\{\s*("|'|\(|\d|\}|$)|\[\s*([{(\["']|\]|$)|(collections\.)?OrderedDict\()`)
)

const supported = "supported inputs: dumps of torch.cuda.memory_stats() (JSON, JSON lines, pickle, msgpack, CSV), " +
	"texts of memory_summary() and list_gpu_processes(), and tables of nvidia-smi"

// sniff chooses how to read a file. Without a way, format is why not.
func (r *reader) sniff(head []byte) (format string, read func(*bufio.Reader) error) {
	text := bytes.TrimLeft(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), " \t\r\n")
	switch {
	case len(text) == 0 && len(head) < 4<<10:
		return "the file is empty; the dump may have failed or still be running", nil
	case bytes.HasPrefix(head, []byte("SQLite format 3")):
		return "is an SQLite database; " + supported, nil
	case bytes.HasPrefix(head, []byte("version https://git-lfs")):
		return "is a Git LFS pointer, not the file itself; run `git lfs pull` to fetch it", nil
	case head[0] == 0x80 && len(head) > 1 && head[1] <= 5, textPickle.Match(head):
		return "pickle", r.pickles
	case textValue.Match(text):
		return "JSON", r.texts
	case head[0] >= 0x81 && head[0] <= 0x9f, head[0] >= 0xdc && head[0] <= 0xdf:
		first := head[:min(len(head), 200)]
		if bytes.Contains(first, []byte("header")) && bytes.Contains(first, []byte("snapana")) {
			return "is a .snapana recording, not a dump of counters", nil
		}
		return "msgpack", r.msgpack
	case !unpack.Printable(head, "\n\r\t\x1b\f\b"):
		return "is binary data of an unknown kind; " + supported, nil
	}
	if c := findHeader(text); c != nil {
		return "CSV", func(br *bufio.Reader) error { return c.read(r, br) }
	}
	return "text", r.tables
}

// nothing is the refusal of a file in which there was nothing to find.
func (r *reader) nothing(head []byte) error {
	msg := "contains no memory counters; " + supported
	switch {
	case r.info.Cut != nil:
		return &snapshot.FormatError{Offset: r.info.Cut.Offset, Msg: r.info.Cut.Msg, Err: snapshot.ErrTruncated}
	case r.info.FirstSkipped != nil && r.info.FirstSkipped.Err != nil:
		f := r.info.FirstSkipped
		return &snapshot.FormatError{Offset: f.Offset, Op: r.format, Msg: f.Msg, Err: f.Err}
	case r.format == "text":
		line, _, _ := bytes.Cut(bytes.TrimSpace(head), []byte("\n"))
		msg = fmt.Sprintf("is a text file (it begins with %q) without memory counters; %s", clip(string(line), 40),
			supported)
	case r.info.Odd > 0:
		msg = "contains no usable counters: " + r.info.FirstOdd.Msg
	}
	return &snapshot.FormatError{Offset: -1, Msg: msg, Err: snapshot.ErrNotSnapshot}
}

// clip shortens a text from the file.
func clip(s string, n int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:n-1]) + "…"
}

// place is a fault in the data as part of what is told of a file.
func place(line int64, e *snapshot.FormatError) *Fault {
	return &Fault{Line: line, Offset: e.Offset, Msg: e.Msg, Err: e.Err}
}

// values reads value by value until next gives io.EOF. A fault in the data ends a file in which something
// was found before; a file without is refused, but for one that is merely cut.
func (r *reader) values(next func() (v plain.Value, line int64, err error)) error {
	for {
		v, line, err := next()
		var fault *snapshot.FormatError
		switch {
		case err == nil:
			r.value(&v, line)
		case err == io.EOF:
			return nil
		case !errors.As(err, &fault), errors.Is(err, snapshot.ErrRefused), tooLong(err),
			r.info.Samples == 0 && (r.format == "pickle" || fault.Err != snapshot.ErrTruncated):
			return err
		default:
			r.info.Cut = place(line, fault)
			return nil
		}
	}
}

// tooLong says that reading failed at a limit on the bytes of a file, which is nothing in the data.
func tooLong(err error) bool {
	var limit *snapshot.LimitError
	return errors.As(err, &limit)
}

// maxSkipped is how many damaged records in a row end the reading: what follows is then
// something else.
const maxSkipped = 1000

// texts reads JSON, JSON lines and what Python prints.
func (r *reader) texts(br *bufio.Reader) error {
	t := plain.NewText(br)
	defer func() { r.lines = t.OneLine() && t.Line() > 1 }()
	return r.values(func() (plain.Value, int64, error) {
		for inRow := 0; ; {
			v, err := t.Next()
			line := t.Line()
			var fault *snapshot.FormatError
			if !errors.As(err, &fault) || !t.OneLine() || tooLong(err) ||
				fault.Err == snapshot.ErrTruncated && t.AtEnd() {
				return v, line, err
			}
			r.skip(place(line, fault))
			if fault.Err != snapshot.ErrTruncated {
				t.SkipLine()
			}
			if inRow++; inRow == maxSkipped {
				return v, line, &snapshot.FormatError{Offset: fault.Offset, Err: snapshot.ErrTruncated,
					Msg: fmt.Sprintf("%d lines in a row are damaged", maxSkipped)}
			}
		}
	})
}

// msgpack reads MessagePack values one after the other.
func (r *reader) msgpack(br *bufio.Reader) error {
	m := plain.NewMsgpack(br)
	return r.values(func() (plain.Value, int64, error) {
		v, err := m.Next()
		return v, 0, err
	})
}

// ErrLongPickle is the snapshot.ErrLimit of a pickle that is longer than counters are, and may be a snapshot.
var ErrLongPickle = fmt.Errorf("%w: the pickle is too long", snapshot.ErrLimit)

// maxPickle bounds a file of pickles, which is held in memory.
const maxPickle = 512 << 20

// pickles reads pickles one after the other, as a program leaves them that appends one with each
// step.
func (r *reader) pickles(br *bufio.Reader) error {
	var b bytes.Buffer // which doubles, and leaves less behind than io.ReadAll
	if _, err := b.ReadFrom(io.LimitReader(br, maxPickle+1)); err != nil {
		return err
	}
	data := b.Bytes()
	if len(data) > maxPickle {
		return &snapshot.FormatError{Offset: maxPickle, Op: "pickle", Err: ErrLongPickle,
			Msg: "the pickle is larger than 512 MiB; save counters as JSON lines"}
	}
	at := 0
	return r.values(func() (plain.Value, int64, error) {
		for at < len(data) && data[at] == 0 { // padding, as in HTML pages (snapshot/SPEC.md 1.4)
			at++
		}
		if at == len(data) {
			return plain.Value{}, 0, io.EOF
		}
		v, info, err := pickle.DecodePlain(bytes.NewReader(data[at:]), pickle.Options{Size: int64(len(data) - at)})
		var fault *snapshot.FormatError
		if errors.As(err, &fault) && fault.Offset >= 0 {
			fault.Offset += int64(at)
		}
		at += int(info.Bytes)
		return v, 0, err
	})
}
