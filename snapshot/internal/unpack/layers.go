package unpack

import (
	"bufio"
	"compress/bzip2"
	"errors"
	"io"
	"io/fs"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/xi2/xz"

	"github.com/snapana/snapana/snapshot"
)

const (
	sniffLen  = 1 << 10
	maxLayers = 3
	// maxWindow bounds what a compressed file may demand for its dictionary.
	maxWindow = 128 << 20
)

// unwrap finds out what r is and opens it, layer by layer.
func (in *Input) unwrap(r io.Reader, size int64, depth int) error {
	br := bufio.NewReaderSize(r, 64<<10)
	head, err := br.Peek(sniffLen)
	cut := errors.Is(err, io.ErrUnexpectedEOF)
	if err != nil && !cut && !errors.Is(err, io.EOF) {
		return err
	}
	kind := sniff(head)
	if kind.layer() && depth == maxLayers {
		return refuse("", snapshot.ErrLimit, "is packed in more than %d layers; unpack it first", maxLayers)
	}
	if !kind.layer() || kind == isHTML && !in.opt.Snapshots {
		in.R, in.Kind, in.Size, in.head, in.cut = br, kind, size, head, cut && depth > 0
		if err := in.filter(); err != nil {
			return err
		}
		return in.use(in)
	}
	in.Containers = append(in.Containers, string(kind))
	switch kind {
	case isHTML:
		return in.page(br, depth)
	case isZip:
		return in.zip(br, depth)
	}
	inside, err := in.decompress(br, kind)
	switch err = unpackError(kind, err); {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return cutOff(kind)
	case err != nil:
		return err
	}
	return in.unwrap(&layer{in: in, r: inside, kind: kind}, 0, depth+1)
}

// tooMuch refuses a compressed file for the memory that it demands.
func tooMuch(kind Kind, what string) error {
	return refuse(kind, snapshot.ErrLimit, "unpacking takes a %s of over %d MiB; unpack the file first", what,
		maxWindow>>20)
}

func cutOff(kind Kind) error {
	return refuse(kind, snapshot.ErrTruncated, "the file ends in the middle of the compressed data")
}

func (in *Input) decompress(r *bufio.Reader, kind Kind) (io.Reader, error) {
	switch kind {
	case isGzip:
		return gzip.NewReader(r)
	case isZstd:
		head, _ := r.Peek(zstd.HeaderMaxSize)
		if h := (zstd.Header{}); h.Decode(head) == nil && h.WindowSize > maxWindow {
			return nil, tooMuch(kind, "window")
		}
		d, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
		if err == nil {
			in.closers = append(in.closers, d.Close)
		}
		return d, err
	case isXz:
		return xz.NewReader(r, maxWindow)
	}
	return bzip2.NewReader(r), nil
}

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
	if len(in.Containers) == 0 { // else what comes out counts
		in.meter.Read(n)
	}
	return n, err
}

// layer is what comes out of a decompressor. It stops a decompression bomb: more bytes than MaxBytes or,
// where that is 0, than the bytes read from the file can honestly hold. Faults get the form of all others.
type layer struct {
	in   *Input
	r    io.Reader
	kind Kind // "" for what is not packed
	n    int64
}

func (l *layer) Read(p []byte) (int, error) {
	if err := l.in.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := l.r.Read(p)
	most := l.in.opt.MaxBytes
	l.n += int64(n)
	if l.kind != "" {
		l.in.meter.Read(n)
	}
	switch {
	case most > 0 && l.n > most:
		return 0, exceeds(most, "", &snapshot.LimitError{Bytes: most})
	case most == 0 && l.n > snapshot.FreeBytes && l.n/snapshot.MaxRatio > l.in.raw.Load():
		return 0, exceeds(-1, l.kind, &snapshot.LimitError{Ratio: snapshot.MaxRatio})
	}
	return n, unpackError(l.kind, err)
}

func exceeds(at int64, kind Kind, limit *snapshot.LimitError) error {
	return &snapshot.FormatError{Offset: at, Op: string(kind), Msg: limit.Error(), Err: limit}
}

// unpackError is a fault of a decompressor in the form of all others.
func unpackError(kind Kind, err error) error {
	var fe *snapshot.FormatError
	switch {
	case err == nil, kind == "", errors.Is(err, io.EOF), errors.As(err, &fe):
		return err
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, xz.ErrBuf):
		// The decoder behind tells that the data was cut, with the offset.
		return io.ErrUnexpectedEOF
	case errors.Is(err, xz.ErrMemlimit):
		return tooMuch(kind, "dictionary")
	}
	if pe := (*fs.PathError)(nil); errors.As(err, &pe) {
		return err // reading failed, not what was read
	}
	return refuse(kind, snapshot.ErrCorrupt, "the compressed data is damaged (%v); copy the file again", err)
}
