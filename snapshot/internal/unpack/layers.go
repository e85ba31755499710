package unpack

import (
	"bufio"
	"compress/bzip2"
	"errors"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"

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
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return cutOff(kind)
	case err != nil:
		return unpackError(kind, err)
	}
	return in.unwrap(in.guard(inside, kind), 0, depth+1)
}

// tooMuch refuses a compressed file for the memory that it demands.
func tooMuch(kind Kind, what string) error {
	return refuse(kind, snapshot.ErrLimit, "unpacking takes a %s of over %d MiB; unpack the file first", what, maxWindow>>20)
}

func cutOff(kind Kind) error {
	return refuse(kind, snapshot.ErrTruncated, "the file ends in the middle of the compressed data")
}

// guard limits what comes out of a decompressor.
func (in *Input) guard(r io.Reader, kind Kind) io.Reader {
	return &limited{r: unpacked{r, kind}, in: in, kind: kind}
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
		return xz.NewReader(newXzGuard(r))
	}
	return bzip2.NewReader(r), nil
}
