package report

import (
	"bytes"
	"cmp"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/report/html"
	"github.com/snapana/snapana/report/json"
	"github.com/snapana/snapana/report/plot"
)

const (
	pageName = "report.html"
	jsonName = "report.json"
)

// file is one file of a report: its name, what writes it, and in the end what it holds.
type file struct {
	name  string
	write func(io.Writer) error
	data  []byte
}

// render makes all files in memory, so that no fault in the making leaves anything on disk.
// They come to a few MiB, plus some 100 KiB for each device.
func render(r *analyze.Result, maxPage int) ([]file, error) {
	files := []file{
		{name: pageName, write: func(w io.Writer) error { return html.Write(w, r, maxPage) }},
		{name: jsonName, write: func(w io.Writer) error { return json.Write(w, r) }},
	}
	for _, p := range plot.All(r) {
		files = append(files, file{name: p.Name + ".png",
			write: func(w io.Writer) error { return p.Write(w, plot.Medium{}) }})
	}
	errs := make([]error, len(files))
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(files)) {
		wg.Go(func() {
			for i := next.Add(1) - 1; int(i) < len(files); i = next.Add(1) - 1 {
				var b bytes.Buffer
				errs[i] = files[i].write(&b)
				files[i].data = b.Bytes()
			}
		})
	}
	wg.Wait()
	return files, cmp.Or(errs...)
}

// ours matches the names that files of a report have.
func ours(name string) bool {
	picture, ok := strings.CutSuffix(name, ".png")
	return name == pageName || name == jsonName || ok && plot.IsName(picture)
}

// isReport reports whether the file at path begins as report.json does.
func isReport(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, 256)
	n, _ := io.ReadFull(f, head)
	return bytes.HasPrefix(head[:n], []byte("{\n \"schema\": \"snapana.report/"))
}
