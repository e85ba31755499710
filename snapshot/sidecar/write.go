package sidecar

import (
	"bytes"
	"fmt"
	"os"
	"time"

	"github.com/vmihailenco/msgpack/v5"
)

// Writer appends records to a file, each with a single write, so that a process that is killed
// leaves at most its last record incomplete, and several processes may append to one file.
type Writer struct {
	f *os.File
}

// Append opens the file at path for appending, and makes it if it is not there. The first
// record of a run must be its Header.
func Append(path string) (*Writer, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	return &Writer{f}, nil
}

// Header writes a header record. Format and version are filled in.
func (w *Writer) Header(at time.Time, h Header) error {
	h.Format, h.Version = Format, Version
	return w.write(struct {
		Type   string `msgpack:"type"`
		Time   int64  `msgpack:"time"`
		Header `msgpack:",inline"`
	}{"header", at.UnixNano(), h})
}

// NVML writes one reading of the driver.
func (w *Writer) NVML(at time.Time, n NVML) error {
	return w.write(struct {
		Type    string `msgpack:"type"`
		Reading `msgpack:",inline"`
	}{"nvml", Reading{at.UnixNano(), n}})
}

// End writes that the recording was stopped in order.
func (w *Writer) End(at time.Time, reason string) error {
	return w.write(struct {
		Type string `msgpack:"type"`
		End  `msgpack:",inline"`
	}{"end", End{Time: at.UnixNano(), Reason: reason}})
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
