package main

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// version is that of a release, in the forms of those who sort it. All four sort alike.
type version struct {
	module string // Go's, such as v1.2.3, v1.2.3-rc.1 or v1.2.4-0.20261123025817-257481908968
	plain  string // semantic, without the v: of archives and images
	pep440 string // of wheels
	debian string
}

var (
	moduleVersion = regexp.MustCompile(`^v([0-9]+\.[0-9]+\.[0-9]+)(?:-([0-9A-Za-z.-]+))?(\+dirty)?$`)
	pseudoVersion = regexp.MustCompile(`^(?:(.*)\.)?([0-9]{14})-([0-9a-f]{12})$`)
	letters       = map[string]string{"alpha": "a", "beta": "b", "rc": "rc"}
	candidate     = regexp.MustCompile(`^(alpha|beta|rc)\.?([0-9]+)$`)
)

// parseVersion takes Go's version of a module. A pseudo-version is of a commit between tags: before its time it has the
// candidate that came last ("-rc.1.0."), "-0." after a release, or nothing where there is no tag.
func parseVersion(s string) (version, error) {
	m := moduleVersion.FindStringSubmatch(s)
	if m == nil {
		return version{}, fmt.Errorf("version %q is not of the form vX.Y.Z", s)
	}
	number, before, local := m[1], m[2], ""
	v := version{module: s, plain: s[1:], pep440: number, debian: number}
	pseudo := pseudoVersion.FindStringSubmatch(before)
	if pseudo != nil {
		before = strings.TrimSuffix(strings.TrimSuffix(pseudo[1], "0"), ".")
	}
	if before != "" {
		c := candidate.FindStringSubmatch(before)
		if c == nil {
			return version{}, fmt.Errorf("version %q: wheels know alpha, beta and rc with a number, such as v1.2.3-rc.1", s)
		}
		n, err := strconv.Atoi(c[2])
		if err != nil {
			return version{}, fmt.Errorf("version %q: %w", s, err)
		}
		if pseudo != nil {
			n++ // in development towards the next one
		}
		v.pep440 += letters[c[1]] + strconv.Itoa(n)
		v.debian += "~" + before
	}
	if pseudo != nil {
		time, commit := pseudo[2], pseudo[3]
		after := "~"
		if before != "" {
			after = "."
		}
		v.pep440 += ".dev" + time
		v.debian += after + "0." + time + "." + commit
		local = ".g" + commit
	}
	if m[3] != "" {
		v.debian += m[3]
		local += ".dirty"
	}
	if local != "" {
		v.pep440 += "+" + local[1:]
	}
	return v, nil
}

// among is an error if the commit has tags and the version is none of them: Go takes no tag from v2 on for a module whose
// path does not end in /v2.
func (v version) among(tags string) error {
	if all := strings.Fields(tags); len(all) > 0 && !slices.Contains(all, strings.TrimSuffix(v.module, "+dirty")) {
		return fmt.Errorf("the commit has the tag %s, but for Go its version is %s: tags are vX.Y.Z, and from v2 on the path in "+
			"go.mod must end in /v2", all[0], v.module)
	}
	return nil
}
