package main

import (
	"os/exec"
	"testing"
)

// versions in the order of their age.
var versions = []version{
	{"v0.0.0-20261123025817-257481908968", "0.0.0-20261123025817-257481908968",
		"0.0.0.dev20261123025817+g257481908968", "0.0.0~0.20261123025817.257481908968"},
	{"v0.0.0-20261124000000-aaaaaaaaaaaa", "0.0.0-20261124000000-aaaaaaaaaaaa",
		"0.0.0.dev20261124000000+gaaaaaaaaaaaa", "0.0.0~0.20261124000000.aaaaaaaaaaaa"},
	{"v1.2.3", "1.2.3", "1.2.3", "1.2.3"},
	{"v1.2.4-0.20261125000000-bbbbbbbbbbbb", "1.2.4-0.20261125000000-bbbbbbbbbbbb",
		"1.2.4.dev20261125000000+gbbbbbbbbbbbb", "1.2.4~0.20261125000000.bbbbbbbbbbbb"},
	{"v1.2.4-alpha.1", "1.2.4-alpha.1", "1.2.4a1", "1.2.4~alpha.1"},
	{"v1.2.4-rc.9", "1.2.4-rc.9", "1.2.4rc9", "1.2.4~rc.9"},
	{"v1.2.4-rc.9.0.20261126000000-cccccccccccc", "1.2.4-rc.9.0.20261126000000-cccccccccccc",
		"1.2.4rc10.dev20261126000000+gcccccccccccc", "1.2.4~rc.9.0.20261126000000.cccccccccccc"},
	{"v1.2.4-rc.10", "1.2.4-rc.10", "1.2.4rc10", "1.2.4~rc.10"},
	{"v1.2.4", "1.2.4", "1.2.4", "1.2.4"},
	{"v1.2.4+dirty", "1.2.4+dirty", "1.2.4+dirty", "1.2.4+dirty"},
	{"v1.2.5-0.20261127000000-dddddddddddd+dirty", "1.2.5-0.20261127000000-dddddddddddd+dirty",
		"1.2.5.dev20261127000000+gdddddddddddd.dirty", "1.2.5~0.20261127000000.dddddddddddd+dirty"},
	{"v1.2.10", "1.2.10", "1.2.10", "1.2.10"},
}

func TestVersions(t *testing.T) {
	for _, want := range versions {
		got, err := parseVersion(want.module)
		if got != want || err != nil {
			t.Errorf("%s: %+v, %v; want %+v", want.module, got, err, want)
		}
	}
	for _, bad := range []string{"(devel)", "", "v1.2", "1.2.3", "v1.2.3-preview", "v1.2.3+meta"} {
		if v, err := parseVersion(bad); err == nil {
			t.Errorf("%q is taken for %+v", bad, v)
		}
	}
}

// TestVersionsSort asks dpkg and packaging, where they are.
func TestVersionsSort(t *testing.T) {
	dpkg := exec.Command("dpkg", "--version").Run() == nil
	packaging := exec.Command("python3", "-c", "import packaging.version").Run() == nil
	const before = "import sys\nfrom packaging.version import Version as V\nassert V(sys.argv[1]) < V(sys.argv[2])"
	for i, b := range versions[1:] {
		a := versions[i]
		if dpkg && exec.Command("dpkg", "--compare-versions", a.debian, "lt", b.debian).Run() != nil {
			t.Errorf("for dpkg, %s is not before %s", a.debian, b.debian)
		}
		if packaging && exec.Command("python3", "-c", before, a.pep440, b.pep440).Run() != nil {
			t.Errorf("for packaging, %s is not before %s", a.pep440, b.pep440)
		}
	}
}

func TestTags(t *testing.T) {
	for _, c := range []struct {
		version, tags string
		ok            bool
	}{{"v1.2.3", "v1.2.3", true}, {"v1.2.3+dirty", "v1.2.3\nv1.2.3-rc.1", true}, {"v0.0.0-20261123025817-257481908968", "", true},
		{"v0.0.0-20261123025817-257481908968", "v2.0.0", false}} {
		v, err := parseVersion(c.version)
		if err != nil {
			t.Fatal(err)
		}
		if err := v.among(c.tags); (err == nil) != c.ok {
			t.Errorf("%s with the tags %q: %v", c.version, c.tags, err)
		}
	}
}
