package load

import (
	"bufio"
	"context"
	"io"
)

// Unpack takes off what r is packed in (gzip, zstd, xz, bzip2, a zip archive of one file, up to three
// layers), and calls read with what is inside, of any kind: for files that are not snapshots
// themselves. Of the options it uses MaxBytes, and name is for messages. It returns how the data was
// wrapped, outermost first. Errors about the data, those of read too, are *FormatError; a file that
// was cut before its data begins gives ErrTruncated.
func Unpack(ctx context.Context, r io.Reader, name string, opt Options, read func(*bufio.Reader) error) ([]string, error) {
	src := &source{ctx: ctx, name: name, opt: opt, inner: read}
	_, err := src.read(r)
	return src.container, err
}

// UnpackFile does the same for the file at path.
func UnpackFile(ctx context.Context, path string, opt Options, read func(*bufio.Reader) error) ([]string, error) {
	src := &source{ctx: ctx, name: path, opt: opt, inner: read}
	_, err := src.open(path)
	return src.container, err
}
