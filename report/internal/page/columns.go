package page

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"

	"github.com/klauspost/compress/gzip"
)

// writer collects columns.
type writer struct{ b []byte }

func (w *writer) plain(n int, at func(int) int64) Column {
	c := Column{At: len(w.b), Len: n, Mode: "u"}
	for i := range n {
		w.b = binary.AppendUvarint(w.b, uint64(max(at(i), 0)))
	}
	return c
}

func (w *writer) signed(n int, at func(int) int64) Column {
	c := Column{At: len(w.b), Len: n, Mode: "z"}
	for i := range n {
		w.b = binary.AppendVarint(w.b, at(i))
	}
	return c
}

func (w *writer) deltas(n int, at func(int) int64) Column {
	c := Column{At: len(w.b), Len: n, Mode: "d"}
	prev := int64(0)
	for i := range n {
		v := at(i)
		w.b = binary.AppendVarint(w.b, v-prev)
		prev = v
	}
	return c
}

// pack joins the header and the columns.
func (w *writer) pack(d *Data) ([]byte, error) {
	header, err := json.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("pack the details of the page: %w", err)
	}
	var out bytes.Buffer
	text := base64.NewEncoder(base64.StdEncoding, &out)
	z := gzip.NewWriter(text)
	for _, part := range [][]byte{binary.LittleEndian.AppendUint32(nil, uint32(len(header))), header, w.b} {
		if _, err := z.Write(part); err != nil {
			return nil, fmt.Errorf("pack the details of the page: %w", err)
		}
	}
	if err := z.Close(); err != nil {
		return nil, fmt.Errorf("pack the details of the page: %w", err)
	}
	if err := text.Close(); err != nil {
		return nil, fmt.Errorf("pack the details of the page: %w", err)
	}
	return out.Bytes(), nil
}
