package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
)

// sumsName is the file of checksums, which `sha256sum -c` reads.
const sumsName = "SHA256SUMS"

func checksums(files []file) file {
	var b bytes.Buffer
	for _, f := range files {
		fmt.Fprintf(&b, "%x  %s\n", sha256.Sum256(f.data), f.name)
	}
	return file{name: sumsName, data: b.Bytes()}
}
