package digest

import "crypto/sha256"

// Sealed adds the checksum.
func Sealed(data []byte) []byte {
	sum := sha256.Sum256(data)
	return append(data[:len(data):len(data)], sum[:]...)
}
