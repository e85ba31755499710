package unpack

import (
	"errors"
	"io"
	"io/fs"

	"github.com/snapana/snapana/snapshot"
)

// counted counts the bytes read from the file itself, and reads none once ctx is done.
type counted struct {
	in *Input
	r  io.Reader   // for Read
	at io.ReaderAt // for ReadAt
}

func (c counted) Read(p []byte) (int, error) {
	return c.in.count(func() (int, error) { return c.r.Read(p) })
}

func (c counted) ReadAt(p []byte, off int64) (int, error) {
	return c.in.count(func() (int, error) { return c.at.ReadAt(p, off) })
}

func (in *Input) count(read func() (int, error)) (int, error) {
	if err := in.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := read()
	in.raw.Add(int64(n))
	return n, err
}

// Default limits of decompression. Traces of one repeated step compress about 13 to 1 with
// gzip, 24 to 1 with xz; bombs are at 1000 to 1 and up.
const (
	freeBytes = 64 << 20
	maxRatio  = 250
)

// limited stops a decompression bomb: more bytes than MaxBytes or, where that is 0, than the bytes
// read from the file can honestly hold.
type limited struct {
	r    io.Reader
	n    int64
	in   *Input
	kind Kind
}

func (l *limited) Read(p []byte) (int, error) {
	if err := l.in.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := l.r.Read(p)
	most := l.in.opt.MaxBytes
	l.n += int64(n)
	switch {
	case most > 0 && l.n > most:
		return 0, exceeds(most, "", &snapshot.LimitError{Bytes: most})
	case most == 0 && l.n > freeBytes && l.n/maxRatio > l.in.raw.Load():
		return 0, exceeds(-1, l.kind, &snapshot.LimitError{Ratio: maxRatio})
	}
	return n, err
}

func exceeds(at int64, kind Kind, limit *snapshot.LimitError) error {
	return &snapshot.FormatError{Offset: at, Op: string(kind), Msg: limit.Error(), Err: limit}
}

// unpacked gives the faults of a decompressor the form of all others.
type unpacked struct {
	r    io.Reader
	kind Kind
}

func (u unpacked) Read(p []byte) (int, error) {
	n, err := u.r.Read(p)
	return n, unpackError(u.kind, err)
}

func unpackError(kind Kind, err error) error {
	var fe *snapshot.FormatError
	switch {
	case err == nil, errors.Is(err, io.EOF), errors.As(err, &fe):
		return err
	case errors.Is(err, io.ErrUnexpectedEOF):
		// The decoder behind tells that the data was cut, with the offset.
		return io.ErrUnexpectedEOF
	}
	if pe := (*fs.PathError)(nil); errors.As(err, &pe) {
		return err // reading failed, not what was read
	}
	return refuse(kind, snapshot.ErrCorrupt, "the compressed data is damaged (%v); copy the file again", err)
}
