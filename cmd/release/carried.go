package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/klauspost/compress/zstd"
)

// texts are embedded files that the program reads with snapshot/carried. Packed they take a quarter, and the program has
// half a megabyte less; the sources, and what `go build` makes of them, have them as they are.
var texts = []string{"snapshot/sidecar/recorder/snapana_recorder.py", "report/json/SCHEMA.md", "report/html/bundle.js",
	"report/html/diff.js", "report/html/style.css", "report/html/live.css", "report/html/page.tmpl", "cmd/snapana/manual/*.md"}

// pack packs the texts of the clone. The go command takes the packed ones, by the file whose path is returned.
func (w *workshop) pack() (string, error) {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithEncoderConcurrency(1))
	if err != nil {
		return "", err
	}
	dir := filepath.Join(w.out, "packed")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	tree, replace := os.DirFS(w.tree), map[string]string{}
	for _, pattern := range texts {
		names, err := fs.Glob(tree, pattern)
		if err != nil {
			return "", err
		}
		if len(names) == 0 {
			return "", fmt.Errorf("no file is named %s", pattern)
		}
		for _, name := range names {
			data, err := fs.ReadFile(tree, name)
			if err != nil {
				return "", err
			}
			to := filepath.Join(dir, strconv.Itoa(len(replace)))
			if err := os.WriteFile(to, z.EncodeAll(data, nil), 0o644); err != nil {
				return "", err
			}
			replace[filepath.FromSlash(name)] = to
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "overlay.json")
	return file, os.WriteFile(file, overlay, 0o644)
}
