// Package carried reads the files that the program carries. They are as they are in the sources, or packed with zstd
// (RFC 8878): fonts always, texts where cmd/release built the program.
package carried

import (
	"fmt"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// magic begins what is packed, and no text.
const magic = "\x28\xb5\x2f\xfd"

// Text gives what an embedded file holds.
func Text(embedded string) string {
	if !strings.HasPrefix(embedded, magic) {
		return embedded
	}
	return string(Bytes(embedded))
}

// Bytes gives what an embedded file holds, to be kept and changed as one likes.
func Bytes(embedded string) []byte {
	if !strings.HasPrefix(embedded, magic) {
		return []byte(embedded)
	}
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
	if err != nil {
		panic(fmt.Sprint("a file that the program carries: ", err))
	}
	defer d.Close()
	data, err := d.DecodeAll([]byte(embedded), nil)
	if err != nil {
		panic(fmt.Sprint("a file that the program carries: ", err))
	}
	return data
}
