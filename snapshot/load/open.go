package load

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/internal/pickle"
)

// Options steer Open and Read. The zero value is usable.
type Options struct {
	// Partial keeps what came before a fault in the data; Snapshot.Partial then says what
	// the fault was.
	Partial bool
	// Progress, if set, is called about once per mebibyte of decoded data with the bytes of
	// the file read so far and its size, 0 when that is not known.
	Progress func(done, total int64)
	// MaxBytes caps the decoded size. 0 allows what honest compression can give: 64 MiB or
	// 250 times the compressed bytes, whichever is more; files that are not compressed are
	// then not capped.
	MaxBytes int64
	// Index picks one of several snapshots in an HTML page, from 0 on.
	Index int
}

// Open reads the snapshot at path, "-" for standard input. See Read.
func Open(ctx context.Context, path string, opt Options) (*snapshot.Snapshot, error) {
	if path == "-" {
		return Read(ctx, os.Stdin, "stdin", opt)
	}
	return (&source{ctx: ctx, name: path, opt: opt}).open(path)
}

// open reads the file at path.
func (s *source) open(path string) (*snapshot.Snapshot, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	defer context.AfterFunc(s.ctx, func() { f.SetReadDeadline(time.Unix(1, 0)) })() // a pipe may have nothing to give
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		what := "a snapshot file"
		if s.inner != nil {
			what = "a file"
		}
		return nil, notSnapshot(path, "is a directory; name "+what+" in it")
	}
	if info.Mode().IsRegular() {
		s.file, s.size = f, info.Size()
	}
	return s.read(f)
}

// Read reads one snapshot from r: a pickle or JSON text, as it is or inside gzip, zstd, xz,
// bzip2, zip or a page made by torch.cuda._memory_viz. What it is, is told by its first bytes
// and never by its name, which is for messages only. Errors about the data are
// *FormatError; errors of r are wrapped. It may read past the end of the snapshot.
// When ctx is done it stops at the next read of r or of what that unpacks to, with ctx.Err().
func Read(ctx context.Context, r io.Reader, name string, opt Options) (*snapshot.Snapshot, error) {
	return (&source{ctx: ctx, name: name, opt: opt}).read(r)
}

// source is one input on its way through the containers.
type source struct {
	ctx  context.Context
	name string
	opt  Options
	file io.ReaderAt // the input itself where it can seek
	size int64       // of the input, 0 when not known

	raw       atomic.Int64 // bytes taken from the input
	container []string     // outermost first
	notes     []string
	html      *page // when the snapshot is inside a page
	closers   []func()

	inner func(*bufio.Reader) error // takes what the containers hold, in place of the decoder
}

func (s *source) read(r io.Reader) (*snapshot.Snapshot, error) {
	snap, err := s.unwrap(counted{s.ctx, r, &s.raw}, s.size, 0)
	for _, c := range s.closers {
		c()
	}
	if stopped := s.ctx.Err(); stopped != nil {
		return nil, fmt.Errorf("read %s: %w", s.name, stopped)
	}
	if err == nil {
		return snap, nil
	}
	var fe *snapshot.FormatError
	if errors.As(err, &fe) {
		fe.Name = s.name
		return nil, fe
	}
	return nil, fmt.Errorf("read %s: %w", s.name, err)
}

// decode is the end of the chain: r gives a bare pickle or JSON text of size bytes, 0 when
// that is not known.
func (s *source) decode(r io.Reader, size int64, isJSON bool) (*snapshot.Snapshot, error) {
	opt := pickle.Options{Name: s.name, Size: size, Partial: s.opt.Partial}
	if s.opt.Progress != nil {
		opt.Progress = func(int64) { s.opt.Progress(s.raw.Load(), s.size) }
	}
	if s.opt.MaxBytes > 0 {
		r = &limited{r: r, max: s.opt.MaxBytes, src: s}
	}
	gate := &gate{r: r, partial: s.opt.Partial}
	var (
		snap *snapshot.Snapshot
		info pickle.Info
		err  error
	)
	if isJSON {
		snap, info, err = pickle.DecodeJSON(gate, opt)
	} else {
		snap, info, err = pickle.Decode(gate, opt)
	}
	if damage := gate.close(); damage != nil && err != nil {
		err = damage
	}
	if snap == nil {
		if err == nil {
			err = notSnapshot(s.name, "holds no snapshot")
		}
		return nil, err
	}
	kind := "JSON"
	if !isJSON {
		kind = fmt.Sprintf("pickle protocol %d", info.Protocol)
	}
	snap.Name, snap.Bytes = filepath.Base(s.name), info.Bytes
	snap.Container, snap.Partial = append(s.container, kind), err
	normalise(snap)
	snap.Writer = fingerprint(snap)
	describe(snap)
	if s.html != nil {
		s.html.describe(snap)
	}
	var fault *snapshot.FormatError
	if errors.As(err, &fault) {
		fault.Name = ""
	}
	snap.Missing = append(snap.Missing, s.notes...)
	return snap, nil
}

func notSnapshot(name, msg string) error {
	return &snapshot.FormatError{Name: name, Offset: -1, Msg: msg, Err: snapshot.ErrNotSnapshot}
}
