package sidecar

import (
	"os"
	"path/filepath"

	"github.com/snapana/snapana/snapshot"
)

// Beside finds the recorder's file that lies beside the snapshot at path and has its name, "" for none:
// NAME.snapana beside NAME.pickle or NAME.pickle.gz.
func Beside(path string) string {
	file := filepath.Join(filepath.Dir(path), snapshot.Stem(path)+".snapana")
	if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() || file == path {
		return ""
	}
	return file
}
