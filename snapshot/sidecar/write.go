package sidecar

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

// Writer appends readings of the driver to a file, each record with a single write, so that a process that
// is killed leaves at most its last record incomplete, and several processes may append to one file.
type Writer struct {
	f       *os.File
	version string
	header  bool // it needs one
}

// Append opens a new file, or one that is a .snapana file already: no other is appended to. In
// the file of a program's recorder, a header would take the records that follow away from the
// program, so there is one only where the file breaks and readers have to find the next record.
// version is that of the program which records.
func Append(ctx context.Context, path, version string) (*Writer, error) {
	w := &Writer{version: version, header: true}
	if info, err := os.Stat(path); err == nil && info.Mode()&fs.ModeNamedPipe != 0 {
		return nil, fmt.Errorf("%s is a pipe; readings are appended to files", path)
	}
	data, err := os.Open(path)
	if err == nil {
		defer data.Close()
		first := make([]byte, 1)
		if _, err := io.ReadFull(data, first); err == nil {
			f, err := Open(ctx, path, Options{})
			switch c := first[0]; {
			case err != nil:
				return nil, err
			case !msgpcode.IsFixedMap(c) && c != msgpcode.Map16 && c != msgpcode.Map32:
				return nil, fmt.Errorf("%s is compressed; nothing can be appended to it", path)
			case len(f.Runs) > 0 && f.Truncated == nil:
				w.header = f.Runs[len(f.Runs)-1].Producer == ProducerNVML
			}
		}
	}
	w.f, err = os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if errors.Is(err, fs.ErrNotExist) {
		// Made by this call, which a link to nothing keeps it from, or by another process meanwhile.
		w.f, err = os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o644)
		if errors.Is(err, fs.ErrExist) {
			if w.f, err = os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0); errors.Is(err, fs.ErrNotExist) {
				err = fmt.Errorf("%s is a link to nothing", path)
			}
		}
	}
	if err != nil {
		return nil, err
	}
	return w, nil
}

// Add appends a reading.
func (w *Writer) Add(r *Reading) error {
	if w.header {
		if err := w.write(struct {
			Type   string `msgpack:"type"`
			Time   int64  `msgpack:"time"`
			Header `msgpack:",inline"`
		}{"header", r.Time, Header{Format: Format, Version: Version, Producer: ProducerNVML, ProducerVersion: w.version,
			Boot: r.Boot}}); err != nil {
			return err
		}
		w.header = false
	}
	return w.write(struct {
		Type    string `msgpack:"type"`
		Reading `msgpack:",inline"`
	}{"nvml", *r})
}

// Close closes the file. It writes nothing.
func (w *Writer) Close() error { return w.f.Close() }

func (w *Writer) write(record any) error {
	var buf bytes.Buffer
	enc := msgpack.NewEncoder(&buf)
	enc.UseCompactInts(true)
	if err := enc.Encode(record); err != nil {
		return fmt.Errorf("encode a record: %w", err)
	}
	if _, err := w.f.Write(buf.Bytes()); err != nil {
		return fmt.Errorf("append to %s: %w", w.f.Name(), err)
	}
	return nil
}
