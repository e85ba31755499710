package digest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/snapana/snapana/snapshot"
	"github.com/snapana/snapana/snapshot/sidecar"
)

// identify tells whose memory a snapshot has, by the recorder's file beside it where there is one.
func identify(path string, s *snapshot.Snapshot, recording *sidecar.File) Identity {
	id := Identity{Rank: int64(snapshot.NamedRank(path)), WorldSize: -1, LocalRank: -1, Torch: s.Writer.Text,
		Backend: s.Writer.Backend, Conf: clip(s.Settings.Conf, maxText), HasConf: s.Settings.Present}
	if recording == nil {
		return id
	}
	run, _ := recording.Snapshot(snapshot.PlainName(s.Name), s.Bytes)
	if run == nil {
		return id
	}
	number := func(to *int64, n *int64) {
		if n != nil && *n >= 0 && *n < maxRank {
			*to = *n
		}
	}
	number(&id.Rank, run.Header.Rank)
	number(&id.WorldSize, run.Header.WorldSize)
	number(&id.LocalRank, run.Header.LocalRank)
	id.Machine, id.Run = clip(run.Header.Boot, maxText), clip(run.Header.Run, maxText)
	if v, ok := run.Env["torch.version"].(string); ok {
		id.Torch = clip(v, maxText)
	}
	for _, name := range slices.Sorted(maps.Keys(run.Env)) {
		if matters(name) && len(id.Environment) < maxEnvironment {
			id.Environment = append(id.Environment, [2]string{clip(name, maxText), clip(fmt.Sprint(run.Env[name]), maxText)})
		}
	}
	return id
}

// maxEnvironment bounds what is kept of the environment.
const maxEnvironment = 128

// matters reports whether a setting of the environment should be the same on all ranks of a run.
func matters(name string) bool {
	if strings.HasSuffix(name, "_VISIBLE_DEVICES") { // of each rank its own
		return false
	}
	return slices.ContainsFunc([]string{"torch.", "alloc.", "env.", "driver.", "python.version", "library."},
		func(p string) bool { return strings.HasPrefix(name, p) })
}

// maxRank bounds the numbers of ranks.
const maxRank = 1e7

// maxText bounds a text, in bytes.
const maxText = 1 << 10

// clip cuts a text between two runes.
func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && s[most]&0xc0 == 0x80 {
		most--
	}
	return s[:most]
}
