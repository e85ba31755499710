package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/snapana/snapana/analyze/attribution"
	"github.com/snapana/snapana/analyze/finding"
	"github.com/snapana/snapana/report/failure"
	"github.com/snapana/snapana/snapshot"
)

// An id is made of the content of what it names: the same stack has the same id in all files, tools and runs of the
// server, and the same finding in all answers about a file.

func hashed(kind string, parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return kind + ":" + hex.EncodeToString(sum[:8])
}

// stackID is the id of a stack, "" of one without frames.
func stackID(frames []string) string {
	if len(frames) == 0 {
		return ""
	}
	return hashed("stack", frames...)
}

// stackOf is the id of a stack of a file.
func stackOf(s *snapshot.Snapshot, id snapshot.StackID) string {
	if id == 0 {
		return ""
	}
	return stackID(attribution.Frames(s, id))
}

// findingIDs are the ids of the findings of a run, in their order. A capacity that is given, which sentences and figures
// may tell, is not part of them.
func findingIDs(list []finding.Finding) []string {
	out, seen := make([]string, len(list)), map[string]int{}
	for i := range list {
		f := &list[i]
		site := ""
		if f.Evidence.Growth != nil {
			site = f.Evidence.Growth.Site
		}
		about := strings.Join(append([]string{f.ID, string(f.Status), fmt.Sprint(f.Device), site}, f.Stack...), "\x00")
		out[i] = hashed("finding", about, fmt.Sprint(seen[about]))
		seen[about]++
	}
	return out
}

// stacksOf are the stacks of a file that have an id.
func (r *run) stacksOf(id string) (out []snapshot.StackID, err error) {
	for i := range r.snap.Stacks.Len() {
		if s := snapshot.StackID(i + 1); stackOf(r.snap, s) == id {
			out = append(out, s)
		}
	}
	if out == nil {
		err = r.noSuch(id)
	}
	return out, err
}

// findingOf is the place of the finding that has an id.
func (r *run) findingOf(id string) (int, error) {
	for i, known := range findingIDs(r.Verdict.Findings) {
		if known == id {
			return i, nil
		}
	}
	return 0, r.noSuch(id)
}

func (r *run) noSuch(id string) error {
	return failure.Advise("take an id from an answer about the same file: report and ghosts give those of findings, state "+
		"those of stacks", failure.Mark(failure.NotInFile, fmt.Errorf("%s has no %s", r.name, clip(id, shortText))))
}
