package snapshot

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
)

// Unpack takes the compression off r, for files that are not snapshots themselves: gzip, zstd,
// xz and bzip2, up to three times over and with the limits of Read. What has none comes out as
// it is. Damage in the compressed data is a *FormatError of Read or of the call, data that was
// cut is io.ErrUnexpectedEOF. Close releases the decoders, not r.
func Unpack(r io.Reader, opt Options) (plain io.Reader, close func(), err error) {
	s := &source{opt: opt}
	close = func() {
		for _, c := range s.closers {
			c()
		}
	}
	br := bufio.NewReaderSize(counted{r, &s.raw}, 64<<10)
	for depth := 0; ; depth++ {
		head, err := br.Peek(8)
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			close()
			return nil, nil, err
		}
		kind := sniff(head)
		switch kind {
		case isGzip, isZstd, isXz, isBzip2:
		default:
			return br, close, nil
		}
		if depth == maxLayers {
			close()
			return nil, nil, &FormatError{Offset: -1, Err: ErrLimit,
				Msg: fmt.Sprintf("is packed more than %d times over; unpack it first", maxLayers)}
		}
		inner, err := s.decompress(br, kind)
		if err != nil {
			close()
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				return nil, nil, cutOff(string(kind))
			}
			return nil, nil, unpackError(string(kind), err)
		}
		br = bufio.NewReaderSize(s.guard(inner, string(kind)), 64<<10)
	}
}

// UnpackFile opens the file at path, "-" for stdin, and whatever it is packed in (gzip, zstd, xz,
// bzip2, a zip archive of one file), and calls read with what is inside, of any kind. Of the
// options it uses MaxBytes. It returns how the data was wrapped, outermost first.
// Errors of read come back with the file's name.
func UnpackFile(path string, stdin io.Reader, opt Options, read func(*bufio.Reader) error) ([]string, error) {
	src := &source{name: path, opt: opt, inner: read}
	if path == "-" {
		src.name = "stdin"
		_, err := src.read(stdin)
		return src.container, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, notSnapshot(path, "is a directory; name a file in it")
	}
	if info.Mode().IsRegular() {
		src.file, src.size = f, info.Size()
	}
	_, err = src.read(f)
	return src.container, err
}
