// Package fleet cuts the reading of many snapshots into tasks, and writes what runs them: a script for Slurm, a
// manifest for Kubernetes.
//
// A Plan is a file in the folder of the digests. A task is told the plan and its number, so that no name of a snapshot
// is in a script: whatever a name has in it, no shell reads it.
package fleet

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/snapana/snapana/snapshot"
)

// File is a snapshot that is to be read.
type File struct {
	Path string // absolute
	Size int64  // as stored
}

// packedRatio is how many times larger than stored a compressed snapshot is taken to be: xz makes 19 of 94 MB of
// events 1.
const packedRatio = 20

// unpacked is the size that a file is taken to unpack to.
func (f File) unpacked() int64 {
	size := min(max(f.Size, 0), maxSize)
	if snapshot.PlainName(f.Path) != f.Path {
		size *= packedRatio
	}
	return size
}

const maxSize = 1 << 48 // that sums do not overflow

// TaskBytes is about what a task reads in a minute, unpacked: a core reads 100 to 300 MB of it in a second.
const TaskBytes = 6 << 30

// Plan is the files of each task.
type Plan struct {
	Tasks [][]File
}

// Cut bundles files, in their order, so that a task takes about a minute and there are at most so many tasks. A file
// is never cut, so a large one is a task of its own.
func Cut(files []File, most int) *Plan {
	for limit := int64(TaskBytes); ; limit += limit/4 + 1 {
		p := bundle(files, func(_ int, bytes int64) bool { return bytes > limit })
		if len(p.Tasks) <= max(most, 1) {
			return p
		}
	}
}

// Chunks bundles so many files in each task.
func Chunks(files []File, n int) *Plan {
	return bundle(files, func(count int, _ int64) bool { return count > n })
}

// bundle begins a task where what it would have, files and bytes, is too much.
func bundle(files []File, over func(count int, bytes int64) bool) *Plan {
	p := &Plan{}
	begin, bytes := 0, int64(0)
	for i, f := range files {
		bytes += f.unpacked()
		if i > begin && over(i-begin+1, bytes) {
			p.Tasks = append(p.Tasks, files[begin:i])
			begin, bytes = i, f.unpacked()
		}
	}
	if begin < len(files) {
		p.Tasks = append(p.Tasks, files[begin:])
	}
	return p
}

// Memory is what a task may need, in bytes: what snapana promises to keep to for the largest of the files, which is
// 256 MiB and 4 bytes for each byte unpacked.
func (p *Plan) Memory() int64 {
	var most int64
	for _, t := range p.Tasks {
		for _, f := range t {
			most = max(most, f.unpacked())
		}
	}
	return 256<<20 + 4*most
}

// Ending is that of the names of plans.
const Ending = ".plan"

const magic = "snapana plan 1"

// Encode gives the plan's file: a line for each snapshot, with its task's number and its path as a string of Go. Equal
// plans give equal bytes.
func (p *Plan) Encode() []byte {
	var b bytes.Buffer
	fmt.Fprintln(&b, magic)
	for i, t := range p.Tasks {
		for _, f := range t {
			fmt.Fprintln(&b, i, strconv.Quote(f.Path))
		}
	}
	return b.Bytes()
}

// Name is that of the file of a plan, by what is in it.
func Name(plan []byte) string {
	sum := sha256.Sum256(plan)
	return "tasks-" + hex.EncodeToString(sum[:4]) + Ending
}

// ErrNoPlan is that of a file that is no plan, or damaged.
var ErrNoPlan = errors.New("is no plan of tasks, as `snapana fleet` writes them, or it is damaged")

// ReadTask gives the files of a task. It reads the plan no further than needed.
func ReadTask(r io.Reader, task int) (files []string, err error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	if !lines.Scan() || lines.Text() != magic {
		return nil, errors.Join(lines.Err(), ErrNoPlan)
	}
	last := -1
	for lines.Scan() {
		number, quoted, _ := strings.Cut(lines.Text(), " ")
		n, err := strconv.Atoi(number)
		if err != nil || n < last {
			return nil, ErrNoPlan
		}
		if last = n; n > task {
			break
		} else if n < task {
			continue
		}
		path, err := strconv.Unquote(quoted)
		if err != nil || path == "" {
			return nil, ErrNoPlan
		}
		files = append(files, path)
	}
	if err := lines.Err(); err != nil {
		return nil, errors.Join(err, ErrNoPlan)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("has no task %d, only tasks up to %d", task, last)
	}
	return slices.Clip(files), nil
}
