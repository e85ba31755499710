package load

import (
	"archive/zip"
	"bufio"
	"bytes"
	"compress/bzip2"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

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
	// maxSpool bounds a zip archive that must be held in memory, because it came through a pipe.
	maxSpool = 1 << 30
)

// unwrap finds out what r is and opens it, layer by layer.
func (s *source) unwrap(r io.Reader, size int64, depth int) (*snapshot.Snapshot, error) {
	br := bufio.NewReaderSize(r, 64<<10)
	head, err := br.Peek(sniffLen)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, err
	}
	kind := sniff(head)
	if kind.layer() && depth == maxLayers {
		return nil, &snapshot.FormatError{Offset: -1, Err: snapshot.ErrLimit,
			Msg: fmt.Sprintf("is packed more than %d times over; unpack it first", maxLayers)}
	}
	if s.inner != nil && (!kind.layer() || kind == isHTML) {
		return nil, s.inner(br)
	}
	switch kind {
	case isPickle:
		return s.decode(br, size, false)
	case isJSON:
		if bytes.HasPrefix(head, bom) {
			br.Discard(len(bom))
			size = 0
		}
		return s.decode(br, size, true)
	case isHTML:
		s.container = append(s.container, "HTML")
		return s.openHTML(br, depth)
	case isZip:
		s.container = append(s.container, "zip")
		return s.openZip(br, depth)
	case isGzip, isZstd, isXz, isBzip2:
		s.container = append(s.container, string(kind))
		inner, err := s.decompress(br, kind)
		if err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				return nil, cutOff(string(kind))
			}
			return nil, unpackError(string(kind), err)
		}
		return s.unwrap(s.guard(inner, string(kind)), 0, depth+1)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) && depth > 0 {
		return nil, cutOff(s.container[len(s.container)-1])
	}
	return nil, s.stranger(kind, head)
}

// tooMuch refuses a compressed file for the memory that it demands.
func tooMuch(kind fileKind, what string) error {
	return &snapshot.FormatError{Offset: -1, Op: string(kind), Err: snapshot.ErrLimit,
		Msg: fmt.Sprintf("the file demands a %s of over %d MiB to unpack; unpack it first", what, maxWindow>>20)}
}

func cutOff(kind string) error {
	return &snapshot.FormatError{Offset: -1, Op: kind, Err: snapshot.ErrTruncated, Msg: "the file ends in the middle of the compressed data"}
}

// guard limits what comes out of a decompressor.
func (s *source) guard(r io.Reader, kind string) io.Reader {
	return &limited{r: unpacked{r, kind}, max: s.opt.MaxBytes, src: s, kind: kind}
}

func (s *source) decompress(r *bufio.Reader, kind fileKind) (io.Reader, error) {
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
			s.closers = append(s.closers, d.Close)
		}
		return d, err
	case isXz:
		return xz.NewReader(newXzGuard(r))
	}
	return bzip2.NewReader(r), nil
}

// isEnvironment reports whether reading failed, not what was read.
func isEnvironment(err error) bool {
	var pe *fs.PathError
	return errors.As(err, &pe)
}

// openZip opens the one snapshot that an archive holds.
func (s *source) openZip(r io.Reader, depth int) (*snapshot.Snapshot, error) {
	at, size := s.file, s.size
	if at == nil || depth > 0 {
		data, err := io.ReadAll(io.LimitReader(r, maxSpool+1))
		if err != nil {
			return nil, err
		}
		if len(data) > maxSpool {
			return nil, &snapshot.FormatError{Offset: -1, Op: "zip", Err: snapshot.ErrLimit, Msg: "a zip archive of over 1 GiB cannot be read through a pipe or inside another container; unpack it first"}
		}
		at, size = bytes.NewReader(data), int64(len(data))
	}
	z, err := zip.NewReader(countedAt{s.ctx, at, &s.raw}, size)
	if err != nil {
		return nil, brokenZip(err)
	}
	member, err := s.pick(z)
	if err != nil {
		return nil, err
	}
	body, err := member.Open()
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return nil, brokenZip(err)
	case err != nil:
		return nil, unpackError("zip", err)
	}
	s.closers = append(s.closers, func() { body.Close() })
	return s.unwrap(s.guard(body, "zip"), 0, depth+1)
}

func brokenZip(err error) error {
	return &snapshot.FormatError{Offset: -1, Op: "zip", Err: snapshot.ErrCorrupt,
		Msg: fmt.Sprintf("the archive is damaged or was cut off (%v); copy the file again", err)}
}

// pick chooses the member of an archive to open.
func (s *source) pick(z *zip.Reader) (*zip.File, error) {
	var files, likely []*zip.File
	for _, f := range z.File {
		base := path.Base(f.Name)
		if f.Mode().IsDir() || strings.HasPrefix(f.Name, "__MACOSX/") || strings.HasPrefix(base, ".") {
			continue
		}
		if base == "data.pkl" || base == "constants.pkl" {
			return nil, notSnapshot(s.name, "is a torch.save archive (a checkpoint, or a TorchScript model), not a memory snapshot; "+
				"snapshots are written by torch.cuda.memory._dump_snapshot")
		}
		files = append(files, f)
		switch strings.ToLower(path.Ext(base)) {
		case ".pickle", ".pkl", ".json", ".html", ".gz", ".zst", ".xz", ".snapshot":
			likely = append(likely, f)
		}
	}
	if len(likely) != 1 {
		likely = files
	}
	switch len(likely) {
	case 0:
		return nil, notSnapshot(s.name, "is a zip archive with no file in it")
	case 1:
		if likely[0].Flags&1 != 0 {
			return nil, notSnapshot(s.name, "is a zip archive with a password; unpack it first")
		}
		return likely[0], nil
	}
	var names []string
	for _, f := range likely[:min(3, len(likely))] {
		names = append(names, fmt.Sprintf("%.60q", f.Name))
	}
	slices.Sort(names)
	return nil, notSnapshot(s.name, fmt.Sprintf("is a zip archive of %d files (%s ...); unpack it and name one snapshot",
		len(likely), strings.Join(names, ", ")))
}
