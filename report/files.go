package report

import (
	"bytes"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/report/html"
	"github.com/snapana/snapana/report/json"
	"github.com/snapana/snapana/report/plot"
)

const jsonName = "report.json"

// file is one finished file of a report.
type file struct {
	name string
	data []byte
}

// formats are the files of a report besides its pictures: their names, and what writes them.
var formats = []struct {
	name  string
	write func(w io.Writer, r *analyze.Result, maxPage int) error
}{
	{"report.html", html.Write},
	{jsonName, func(w io.Writer, r *analyze.Result, _ int) error { return json.Write(w, r) }},
}

// render makes all files in memory, so that no fault in the making leaves anything on disk.
// They come to a few MiB, plus some 100 KiB for each device.
func render(r *analyze.Result, maxPage int) ([]file, error) {
	type job struct {
		name  string
		write func(io.Writer) error
	}
	var jobs []job
	for _, f := range formats {
		jobs = append(jobs, job{f.name, func(w io.Writer) error { return f.write(w, r, maxPage) }})
	}
	for _, p := range plot.All(r) {
		jobs = append(jobs, job{p.Name + ".png", func(w io.Writer) error { return p.Write(w, plot.Medium{}) }})
	}
	files, errs := make([]file, len(jobs)), make([]error, len(jobs))
	next := make(chan int)
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(jobs)) {
		wg.Go(func() {
			for i := range next {
				var b bytes.Buffer
				errs[i] = jobs[i].write(&b)
				files[i] = file{jobs[i].name, b.Bytes()}
			}
		})
	}
	for i := range jobs {
		next <- i
	}
	close(next)
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return files, nil
}

// ours matches the names that files of a report have.
func ours(name string) bool {
	for _, f := range formats {
		if f.name == name {
			return true
		}
	}
	picture, ok := strings.CutSuffix(name, ".png")
	return ok && plot.IsName(picture)
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
