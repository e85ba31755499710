package chart

import (
	"strings"

	"github.com/snapana/snapana/analyze/attribution"
)

// Sites names the groups. Groups that share a site also get the innermost frame
// in which they differ, in brackets, where there is one.
func Sites(groups []attribution.Group) []string {
	out := make([]string, len(groups))
	same := map[string][]int{}
	for i := range groups {
		out[i] = groups[i].Name()
		same[out[i]] = append(same[out[i]], i)
	}
	for _, rows := range same {
		at := differ(groups, rows)
		if at < 0 {
			continue
		}
		for _, i := range rows {
			if f := groups[i].Frames; at < len(f) && short(f[at]) != out[i] {
				out[i] += " (" + short(f[at]) + ")"
			}
		}
	}
	return out
}

// differ is the innermost frame that the groups in rows do not all have, -1 when there is none.
func differ(groups []attribution.Group, rows []int) int {
	first := groups[rows[0]].Frames
	at := -1
	for _, i := range rows[1:] {
		f := groups[i].Frames
		n := 0
		for n < len(f) && n < len(first) && f[n] == first[n] {
			n++
		}
		if (n < len(f) || n < len(first)) && (at < 0 || n < at) {
			at = n
		}
	}
	return at
}

// short drops the folders of a frame "dir/file.py:1 function".
func short(frame string) string {
	file, function, ok := strings.Cut(frame, " ")
	file = file[strings.LastIndexAny(file, `/\`)+1:]
	if !ok {
		return file
	}
	return file + " " + function
}
