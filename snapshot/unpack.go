package snapshot

import (
	"bufio"
	"io"
	"os"
)

// Unpack opens the file at path, "-" for stdin, and whatever it is packed in (gzip, zstd, xz,
// bzip2, a zip archive of one file), and calls read with what is inside, of any kind. Of the
// options it uses MaxBytes. It returns how the data was wrapped, outermost first.
// Errors of read come back with the file's name.
func Unpack(path string, stdin io.Reader, opt Options, read func(*bufio.Reader) error) ([]string, error) {
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
