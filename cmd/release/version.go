package main

import (
	"fmt"
	"regexp"
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
