// Package unpack takes off what a file is packed in (gzip, zstd, xz, bzip2, a zip archive of one file,
// the script of an HTML page) until its readers can use it. What something is, is told by its first
// bytes, never by a name. It decodes nothing of what is inside: that is for the function that it calls.
//
// The input is hostile. Layers are counted, a decompressor gets no more memory than honest files
// need, and what it gives is held against the bytes that it was made of. Everything streams, except
// a zip archive that cannot be read at random, which is held in memory.
package unpack

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync/atomic"

	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/budget"
	"github.com/snapana/snapana/snapshot/input"
)

// Options steer Read. The zero value is usable.
type Options struct {
	// MaxBytes caps what comes out of each layer. 0 allows what honest compression can give: the larger
	// of snapshot.FreeBytes, and snapshot.MaxRatio times the compressed bytes.
	MaxBytes int64
	// Snapshots says that a memory snapshot is wanted: an HTML page is then a layer too, and Index
	// chooses one of the snapshots in it, from 0 on. Without it a page is passed on as it is.
	Snapshots bool
	Index     int
}

// Input is what was inside. It is valid during the call that gets it, but for Containers and Pages.
type Input struct {
	R          *bufio.Reader
	Kind       Kind     // of R, by its first bytes
	Size       int64    // bytes of R; 0 unknown, as of everything packed
	Containers []string // outermost first, such as "gzip"
	Page       bool     // R comes out of an HTML page
	// Pages is how many snapshots that page has. It is counted to the end only when the call is over.
	Pages int

	ctx     context.Context
	meter   *budget.Meter
	name    string
	opt     Options
	use     func(*Input) error
	file    io.ReaderAt // the file itself where it can seek
	size    int64       // of the file, 0 unknown
	raw     atomic.Int64
	head    []byte // the first bytes of R
	cut     bool   // the data that R comes out of ends in them, early
	closers []func()
}

// Read unpacks what r gives, or the file called name where r is nil, and calls use with what is inside,
// once. A regular file is also read from other places than where it stands, unless it is standard input. Beyond that
// name is for messages only. Errors about the data, those of use too, are
// *snapshot.FormatError with the name; other errors, those of r, are wrapped. A file that was cut before
// its data begins gives ErrTruncated; later the reader in use gets io.ErrUnexpectedEOF. When ctx is done
// the next read fails, and so does Read, with ctx.Err().
func Read(ctx context.Context, r io.Reader, name string, opt Options, use func(*Input) error) error {
	in := &Input{ctx: ctx, meter: budget.From(ctx), name: name, opt: opt, use: use}
	in.meter.Allow(opt.MaxBytes)
	if r == nil {
		f, err := input.Open(ctx, name)
		if err != nil {
			return err
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			return err
		}
		switch mode := info.Mode(); {
		case mode.IsRegular():
			in.file, in.size = f, info.Size()
		case mode.IsDir() && opt.Snapshots:
			return in.finish(refuse("", snapshot.Folder, "is a directory, not a snapshot"))
		case mode.IsDir():
			return in.finish(refuse("", snapshot.Folder, "is a directory; name a file in it"))
		}
		r = f
	} else if f, ok := r.(input.File); ok && r != os.Stdin {
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			in.file, in.size = f, info.Size()
		}
	}
	err := in.unwrap(counted{in: in, r: r}, in.size, 0)
	for _, c := range in.closers {
		c()
	}
	if stopped := ctx.Err(); stopped != nil {
		err = stopped
	}
	return in.finish(err)
}

// Foreign reports whether R is known to be none of what is read here.
func (in *Input) Foreign() bool {
	return in.Kind == isEmpty || in.Kind == isLFS || in.Kind == isPacked || in.Kind == isForeign
}

// filter puts the context's filter before R, if it has one: of what is a reader's business, not of what is refused.
func (in *Input) filter() error {
	if input.FilterOf(in.ctx) == nil || in.Foreign() {
		return nil
	}
	r, done := input.Filtered(in.ctx, in.R)
	in.closers = append(in.closers, done)
	in.R, in.Size = bufio.NewReaderSize(r, 64<<10), 0
	head, err := in.R.Peek(sniffLen)
	if in.head = head; len(head) == 0 && err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	return nil
}

// finish puts the name to an error.
func (in *Input) finish(err error) error {
	var fe *snapshot.FormatError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &fe):
		fe.Name = in.name
		return fe
	case errors.As(err, new(*fs.PathError)): // which has the name
		return err
	}
	return fmt.Errorf("read %s: %w", in.name, err)
}

// Progress is how many bytes of the file were read, and its size, 0 when that is not known.
func (in *Input) Progress() (done, total int64) { return in.raw.Load(), in.size }

// Capped is R with an error behind MaxBytes, of files too that are not packed.
func (in *Input) Capped() io.Reader {
	if in.opt.MaxBytes == 0 {
		return in.R
	}
	return &layer{r: in.R, in: in}
}

func notSnapshot(msg string) error { return refuse("", snapshot.ErrNotSnapshot, "%s", msg) }

// refuse is an error about the file, or about the container in it where kind is one.
func refuse(kind Kind, class error, format string, args ...any) error {
	return &snapshot.FormatError{Offset: -1, Op: string(kind), Msg: fmt.Sprintf(format, args...), Err: class}
}
