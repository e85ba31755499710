package load

import (
	"bufio"
	"io"
)

// Unpack takes off what r is packed in (gzip, zstd, xz, bzip2, a zip archive of one file, up to three
// layers), and calls read with what is inside, of any kind: for files that are not snapshots
// themselves. Of the options it uses MaxBytes, and name is for messages. It returns how the data was
// wrapped, outermost first. Errors about the data, those of read too, are *FormatError; a file that
// was cut before its data begins gives ErrTruncated.
func Unpack(r io.Reader, name string, opt Options, read func(*bufio.Reader) error) ([]string, error) {
	src := &source{name: name, opt: opt, inner: read}
	_, err := src.read(r)
	return src.container, err
}

// UnpackFile does the same for the file at path, "-" for stdin.
func UnpackFile(path string, stdin io.Reader, opt Options, read func(*bufio.Reader) error) ([]string, error) {
	if path == "-" {
		return Unpack(stdin, "stdin", opt, read)
	}
	src := &source{name: path, opt: opt, inner: read}
	_, err := src.open(path)
	return src.container, err
}
