package attach

import (
	"bytes"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// mapping is a part of a process's address space that comes from a file.
type mapping struct {
	from, to uint64 // addresses, the second behind it
	writable bool
	file     string // as the process sees it, with " (deleted)" behind the name of one that was replaced
}

// most is how much of the address space of a process is looked through for an interpreter.
const most = 512 << 20

// parseMaps reads /proc/PID/maps (proc_pid_maps(5)). Lines that are no mapping of a file are left out.
func parseMaps(data []byte) []mapping {
	var out []mapping
	for line := range bytes.Lines(data) {
		// from-to perms offset device inode file
		fields := strings.SplitN(strings.TrimSuffix(string(line), "\n"), " ", 6)
		if len(fields) < 6 {
			continue
		}
		from, to, _ := strings.Cut(fields[0], "-")
		a, err1 := strconv.ParseUint(from, 16, 64)
		b, err2 := strconv.ParseUint(to, 16, 64)
		file := strings.TrimLeft(fields[5], " ")
		if err1 != nil || err2 != nil || b <= a || !strings.HasPrefix(file, "/") {
			continue
		}
		out = append(out, mapping{a, b, strings.HasPrefix(fields[1], "rw"), file})
	}
	return out
}

var named = regexp.MustCompile(`python(\d+\.\d+)`)

// isPython reports whether a file is an interpreter by its name: python3.14, libpython3.14.so.1.0.
func isPython(file string) bool { return strings.Contains(path.Base(file), "python") }

// nameOfPython is the version in the name of an interpreter among the files, like 3.11, or "" without one.
func nameOfPython(maps []mapping) string {
	for _, m := range maps {
		if v := named.FindStringSubmatch(path.Base(m.file)); v != nil {
			return v[1]
		}
	}
	return ""
}
