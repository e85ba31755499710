package sidecar

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/vmihailenco/msgpack/v5/msgpcode"

	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/input"
	"github.com/snapana/snapana/snapshot/internal/unpack"
)

// Options steer Open and Read. The zero value is usable.
type Options struct {
	// Partial keeps what came before a fault in the data; File.Partial then says what the
	// fault was. A file that merely ends early needs no such leave.
	Partial bool
	// MaxBytes caps the size of the file, unpacked, as in load.Options.
	MaxBytes int64
}

// Beside finds the recorder's file that lies beside the snapshot at path and has its name, "" for none:
// NAME.snapana beside NAME.pickle or NAME.pickle.gz.
func Beside(ctx context.Context, path string) (file string, bytes int64) {
	file = input.Join(input.Dir(path), snapshot.Stem(path)+".snapana")
	info, err := input.Stat(ctx, file)
	if err != nil || !info.Mode().IsRegular() || file == path {
		return "", -1
	}
	return file, info.Size()
}

// Open reads the .snapana file at path, "-" for standard input. See Read.
func Open(ctx context.Context, path string, opt Options) (*File, error) {
	if path == "-" {
		return Read(ctx, os.Stdin, "stdin", opt)
	}
	if info, err := input.Stat(ctx, path); err == nil && info.IsDir() {
		return nil, &FormatError{Name: path, Offset: -1, Err: ErrNotSidecar,
			Msg: "is a directory; name a .snapana file in it"}
	}
	return Read(ctx, nil, path, opt)
}

// Read reads the records in r, or in the file called name where r is nil, as they are or in gzip, zstd,
// xz, bzip2 or zip. A file that ends inside a record, or inside the compressed data, is no error:
// File.Truncated tells. Errors about the data are *FormatError; errors of r are wrapped, ctx.Err() when
// ctx is done before all is read. Beyond that name is for messages only.
func Read(ctx context.Context, r io.Reader, name string, opt Options) (*File, error) {
	f := &File{Name: input.Base(ctx, name)}
	err := unpack.Read(ctx, r, name, unpack.Options{MaxBytes: opt.MaxBytes}, func(in *unpack.Input) error {
		return f.read(in.Capped(), opt)
	})
	switch {
	case errors.Is(err, snapshot.ErrTruncated):
		f.Truncated = broken(0)
	case err != nil:
		return nil, err
	}
	return f, nil
}

func (f *File) read(plain io.Reader, opt Options) error {
	in := &frames{r: plain}
	err := in.stranger()
	if err != nil {
		return err
	}
	unknown := map[string]int64{}
	d := &decoder{cursor: cursor{unknown: unknown}}
	for err == nil {
		var frame []byte
		var offset int64
		if frame, offset, err = in.next(); err == nil {
			err = d.record(frame, offset)
		}
		if !errors.Is(err, snapshot.ErrTruncated) && !errors.Is(err, snapshot.ErrCorrupt) {
			continue
		}
		// A process that was killed, and started again with the same file, leaves a torn
		// record with a new header behind it.
		if skipped := in.resync(offset); skipped > 0 {
			f.Gaps = append(f.Gaps, Gap{offset, skipped})
			err = nil
		}
	}
	f.Bytes, f.Runs = in.offset(), d.runs
	for _, what := range slices.Sorted(maps.Keys(unknown)) {
		f.Unknown = append(f.Unknown, Unknown{what, unknown[what]})
	}
	var fe *FormatError
	switch {
	case errors.Is(err, io.EOF):
	case errors.As(err, &fe) && errors.Is(err, snapshot.ErrTruncated):
		f.Truncated = fe
	case errors.As(err, &fe) && opt.Partial && len(f.Runs) > 0:
		f.Partial = fe
	default:
		return err
	}
	return nil
}

func broken(offset int64) *FormatError {
	return &FormatError{Offset: offset, Err: snapshot.ErrTruncated,
		Msg: "the file breaks off here, in the middle of a record; everything before it was used"}
}

func refused(offset int64, class error, why string) *FormatError {
	return &FormatError{Offset: offset, Msg: "the record that begins here " + why, Err: class}
}

// frames cuts a stream into records.
type frames struct {
	r          io.Reader
	buf        []byte
	start, end int   // the bytes of buf that are still to come
	base       int64 // offset of buf[0] in the stream
	err        error // of r, once it gave one
}

func (in *frames) offset() int64 { return in.base + int64(in.start) }

// more reads on, at least one byte, unless the stream is at its end.
func (in *frames) more() bool {
	if in.err != nil {
		return false
	}
	if in.start > 0 {
		copy(in.buf, in.buf[in.start:in.end])
		in.base += int64(in.start)
		in.start, in.end = 0, in.end-in.start
	}
	if in.end == len(in.buf) {
		in.buf = append(in.buf, make([]byte, max(64<<10, len(in.buf)))...)
	}
	n := 0
	for n == 0 && in.err == nil {
		n, in.err = in.r.Read(in.buf[in.end:])
	}
	in.end += n
	return n > 0
}

// next gives the next record and its offset; io.EOF at the end of the stream. After a fault the
// record that has it is still to come.
func (in *frames) next() ([]byte, int64, error) {
	for {
		at := in.offset()
		b := in.buf[in.start:in.end]
		n, err := scan(b)
		switch {
		case err == nil:
			// The record may have been torn, and have taken the next run's header for its rest.
			beyond := n + len(header) + 2
			if len(b) < beyond {
				if in.more() {
					continue
				}
				b = in.buf[in.start:in.end] // which has moved
			}
			if i := headerIn(b[:min(beyond, len(b))]); i > 0 && i < n {
				return nil, at, refused(at, snapshot.ErrCorrupt, "is incomplete")
			}
			in.start += n
			return b[:n], at, nil
		case !errors.Is(err, errShort):
			return nil, at, refused(at, snapshot.ErrCorrupt, "is damaged: "+err.Error())
		case len(b) >= maxRecord:
			return nil, at, refused(at, snapshot.ErrLimit, fmt.Sprintf("is larger than %d MiB", maxRecord>>20))
		case in.more():
		case len(b) == 0 && errors.Is(in.err, io.EOF):
			return nil, at, io.EOF
		case errors.Is(in.err, io.EOF), errors.Is(in.err, io.ErrUnexpectedEOF):
			return nil, at, broken(at)
		default:
			return nil, at, in.err
		}
	}
}

// header is how every header record goes on after its map code.
var header = []byte("\xa4type\xa6header")

// headerIn finds where a header record begins in b, but not at its start; -1 if there is none.
func headerIn(b []byte) int {
	for from := 1; from < len(b); {
		i := bytes.Index(b[from:], header)
		if i < 0 {
			return -1
		}
		at := from + i
		switch { // a map of up to 15 keys, or of more
		case at > 1 && msgpcode.IsFixedMap(b[at-1]):
			return at - 1
		case at > 3 && b[at-3] == msgpcode.Map16:
			return at - 3
		}
		from = at + 1
	}
	return -1
}

// resync goes on to the next header record after the one at offset, which may have taken bytes
// of it for its own. It returns how many bytes it left out, 0 when there is none.
func (in *frames) resync(offset int64) int64 {
	in.start = int(offset - in.base) // nothing was read since
	for searched := 0; ; {
		b := in.buf[in.start:in.end]
		if at := headerIn(b[searched:]); at > 0 {
			in.start += searched + at
			return int64(searched + at)
		}
		searched = max(0, len(b)-len(header)-3)
		if len(b) >= maxRecord || !in.more() {
			return 0
		}
	}
}

// stranger refuses a stream that does not begin as a .snapana file does, as far as it goes.
func (in *frames) stranger() error {
	for in.end < 1<<10 && in.more() {
	}
	if in.err != nil && !errors.Is(in.err, io.EOF) && !errors.Is(in.err, io.ErrUnexpectedEOF) {
		return in.err
	}
	b := in.buf[:in.end]
	if len(b) == 0 {
		in.err = io.ErrUnexpectedEOF // an empty file is one that was cut at its first byte
		return nil
	}
	head := 1
	if b[0] == msgpcode.Map16 {
		head = 3
	}
	ok := msgpcode.IsFixedMap(b[0]) || b[0] == msgpcode.Map16
	rest := b[min(head, len(b)):]
	if ok && (bytes.HasPrefix(rest, header[:min(len(rest), len(header))]) || bytes.Contains(rest, header)) {
		return nil // perhaps a first header that was torn, with another behind it
	}
	class := ErrForeign
	if b[0] == 0x80 || b[0] == '{' || b[0] == '[' {
		class = errors.Join(ErrForeign, snapshot.ErrSnapshot)
	}
	return &FormatError{Offset: -1, Msg: "is not a .snapana file", Err: class}
}
