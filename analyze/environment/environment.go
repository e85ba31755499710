// Package environment compares what two recordings say of the machine, the libraries and the
// settings that their programs ran with, for memory that grows on one machine only.
package environment

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/snapshot/sidecar"
)

// Comparison is two environments side by side.
type Comparison struct {
	A string `json:"a"` // base names
	B string `json:"b"`
	// Rows are those that are known to matter first, in the order of rules, then the others by name.
	Rows []Row `json:"rows"`
	// Single counts the settings that only one recording knows. They are no difference.
	Single int `json:"-"`
}

// Row is one setting. An empty value says that the recording does not have it, and Absent what
// that means: "not set", "unlimited" or "unknown".
type Row struct {
	Name    string `json:"name"`
	A       string `json:"a"`
	B       string `json:"b"`
	Absent  string `json:"absent"`
	Differs bool   `json:"differs"`
	Why     string `json:"why"` // why a difference matters for memory; "" when it is not known to
}

// Values of the samples, beside those of FORMAT.md.
const (
	Children    = "samples.children"
	ChildrenPSS = "samples.children_pss"
)

// Compare compares the environments of the last program in each file.
func Compare(a, b *sidecar.File) (*Comparison, error) {
	x, err := environment(a)
	if err != nil {
		return nil, err
	}
	y, err := environment(b)
	if err != nil {
		return nil, err
	}
	c := &Comparison{A: a.Name, B: b.Name, Rows: []Row{}}
	order := map[string]int{} // by name, its place in rules, or behind them
	for _, env := range []map[string]any{x, y} {
		for name := range env {
			if order[name] = slices.IndexFunc(rules, func(r rule) bool { return r.matches(name) }); order[name] < 0 {
				order[name] = len(rules)
			}
		}
	}
	for name, at := range order {
		row := Row{Name: name, A: text(name, x[name]), B: text(name, y[name]), Absent: absent(name)}
		row.Differs = row.A != row.B && (row.Absent != unknown || row.A != "" && row.B != "")
		if name == ChildrenPSS { // measured: never quite the same
			p, both := x[name].(int64)
			q, too := y[name].(int64)
			row.Differs = both && too && 4*max(p-q, q-p) > max(p, q)
		}
		if row.Absent == unknown && (row.A == "") != (row.B == "") {
			c.Single++
		}
		if at < len(rules) {
			row.Why = rules[at].why
		}
		c.Rows = append(c.Rows, row)
	}
	slices.SortFunc(c.Rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(order[a.Name], order[b.Name]), cmp.Compare(a.Name, b.Name))
	})
	return c, nil
}

// environment is the flat map of the last run that has one, with what its samples tell.
func environment(f *sidecar.File) (map[string]any, error) {
	for i := len(f.Runs) - 1; i >= 0; i-- {
		run := &f.Runs[i]
		if run.Env == nil {
			continue
		}
		env := maps.Clone(run.Env)
		if run.Program != "" {
			env["program"] = run.Program
		}
		if run.WorldSize != nil {
			env["world_size"] = *run.WorldSize
		}
		var looked bool
		var most, pss int64
		for k := range run.Samples {
			children := run.Samples[k].Children
			looked = looked || children != nil
			most = max(most, int64(len(children)))
			var sum int64
			for _, c := range children {
				if c.PSS != nil {
					sum += *c.PSS
				}
			}
			pss = max(pss, sum)
		}
		if looked {
			env[Children] = most
			if pss > 0 {
				env[ChildrenPSS] = pss
			}
		}
		return env, nil
	}
	return nil, fmt.Errorf("%s has no environment: it is not by the Python recorder, or ends before it", f.Name)
}

// boundless is what version 1 of cgroups says for no limit, less what pages may take off it.
const boundless = 1 << 62

// text prints a value; bytes as such.
func text(name string, v any) string {
	switch v := v.(type) {
	case string:
		return v
	case bool:
		return strconv.FormatBool(v)
	case int64:
		if strings.HasPrefix(name, "os.cgroup_") && v >= boundless {
			return ""
		}
		if slices.Contains(inBytes, name) || strings.HasSuffix(name, ".total") {
			return units.Bytes(v)
		}
		return strconv.FormatInt(v, 10)
	}
	return ""
}

var inBytes = []string{"host.ram", "host.swap", "host.shm", "limit.as", "limit.data", "limit.rss", "limit.memlock", "os.cgroup_memory_max", "os.cgroup_memory_high", ChildrenPSS}

const unknown = "unknown"

func absent(name string) string {
	switch {
	case strings.HasPrefix(name, "limit."), strings.HasPrefix(name, "os.cgroup_memory_"):
		return "unlimited"
	case strings.HasPrefix(name, "env."), strings.HasPrefix(name, "alloc.PYTORCH"), name == "python.start_method":
		return "not set"
	case strings.HasPrefix(name, "library."):
		return "not found"
	}
	return unknown
}
