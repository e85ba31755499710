package snapshot

import (
	"bufio"
	"io"
	"os"
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
