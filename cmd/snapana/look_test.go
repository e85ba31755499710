package main

import (
	"bytes"
	"maps"
	"strings"
	"testing"

	"github.com/snapana/snapana/report/text"
)

func TestLook(t *testing.T) {
	type env = map[string]string
	auto := lookFlags{color: "auto"}
	for _, c := range []struct {
		flags    lookFlags
		terminal bool
		columns  int
		env      env
		want     text.Options
	}{
		{auto, false, 0, nil, text.Options{}},
		{auto, true, 90, nil, text.Options{Color: true, Width: 90}},
		{auto, true, 90, env{"COLUMNS": "70"}, text.Options{Color: true, Width: 70}},
		{auto, false, 0, env{"COLUMNS": "70"}, text.Options{Width: 70}},
		{auto, true, 90, env{"COLUMNS": "wide"}, text.Options{Color: true, Width: 90}},
		{auto, true, 90, env{"COLUMNS": "0"}, text.Options{Color: true, Width: 90}},
		{lookFlags{width: 66, color: "auto"}, true, 90, env{"COLUMNS": "70"}, text.Options{Color: true, Width: 66}},
		{auto, true, 90, env{"NO_COLOR": "1"}, text.Options{Width: 90}},
		{auto, true, 90, env{"CLICOLOR": "0"}, text.Options{Width: 90}},
		{auto, true, 90, env{"CLICOLOR": "1"}, text.Options{Color: true, Width: 90}},
		{auto, true, 90, env{"NO_COLOR": "1", "CLICOLOR_FORCE": "1", "FORCE_COLOR": "3"}, text.Options{Width: 90}},
		{auto, false, 0, env{"CLICOLOR_FORCE": "1"}, text.Options{Color: true}},
		{auto, false, 0, env{"CLICOLOR_FORCE": "0"}, text.Options{}},
		{auto, false, 0, env{"FORCE_COLOR": "1"}, text.Options{Color: true}},
		{auto, true, 90, env{"FORCE_COLOR": "0"}, text.Options{Width: 90}},
		{lookFlags{color: "always"}, false, 0, env{"NO_COLOR": "1"}, text.Options{Color: true}},
		{lookFlags{color: "never"}, true, 90, env{"FORCE_COLOR": "1"}, text.Options{Width: 90}},
		{auto, false, 0, env{"LANG": "C"}, text.Options{ASCII: true}},
		{auto, false, 0, env{"LANG": "de_DE.UTF-8", "LC_ALL": "POSIX"}, text.Options{ASCII: true}},
		{auto, false, 0, env{"LANG": "C", "LC_CTYPE": "C.utf8"}, text.Options{}},
	} {
		if got := c.flags.on(c.terminal, c.columns, func(name string) string { return c.env[name] }); got != c.want {
			t.Errorf("%+v: %+v", c, got)
		}
	}
}

// TestVariables holds that a variable is the default of its flag, whatever the flag is, and that errors name it.
func TestVariables(t *testing.T) {
	type env = map[string]string
	const file = "../../fixtures/healthy.pickle"
	for _, c := range []struct {
		args string
		env  env
		same string // what prints the same
		err  string
	}{
		{"summary " + file, env{"SNAPANA_JSON": "true"}, "summary --json " + file, ""},
		{"summary --json=false " + file, env{"SNAPANA_JSON": "true"}, "summary " + file, ""},
		{"summary " + file, env{"SNAPANA_JSON": "", "SNAPANA_WIDTH": "", "SNAPANA_CACHE": "off"}, "summary " + file, ""},
		{"summary " + file, env{"SNAPANA_WIDTH": "60"}, "summary --width 60 " + file, ""},
		{"summary --width 80 " + file, env{"SNAPANA_WIDTH": "60"}, "summary --width=80 " + file, ""},
		{"summary " + file, env{"SNAPANA_WIDTH": "70", "COLUMNS": "90"}, "summary --width=70 " + file, ""},
		{"peak " + file, env{"SNAPANA_BY": "stack", "SNAPANA_TOP": "3", "SNAPANA_COLOR": "always"},
			"peak --by stack --top 3 --color always " + file, ""},
		{"report --json " + file, env{"SNAPANA_FORMAT": "md", "SNAPANA_QUIET": "1"}, "report --json " + file, ""},
		{file, env{"SNAPANA_FORMAT": "md"}, "--format md " + file, ""},
		{"version", env{"SNAPANA_BY": "nonsense", "SNAPANA_HELP": "1"}, "version", ""},
		{"", env{"SNAPANA_WIDTH": "80"}, "--help", ""},
		{"summary " + file, env{"SNAPANA_JSON": "yes"}, "",
			`snapana: invalid SNAPANA_JSON "yes", the default of --json; expected true or false`},
		{"summary " + file, env{"SNAPANA_WIDTH": "wide"}, "",
			`snapana: invalid SNAPANA_WIDTH "wide", the default of --width; expected a whole number`},
		{"summary " + file, env{"SNAPANA_WIDTH": "10"}, "", "(SNAPANA_WIDTH sets --width)"},
		{"summary " + file, env{"SNAPANA_COLOR": "blue"}, "", "(SNAPANA_COLOR sets --color)"},
		{"peak " + file, env{"SNAPANA_BY": "stak"}, "", `unknown --by "stak" (did you mean stack?)`},
		{"peak " + file, env{"SNAPANA_BY": "stak"}, "", "(SNAPANA_BY sets --by)"},
		{"peak " + file, env{"SNAPANA_MAX_BYTES": "much"}, "",
			`invalid SNAPANA_MAX_BYTES "much", the default of --max-bytes; expected a size`},
		{"report " + file, env{"SNAPANA_JSON": "1", "SNAPANA_QUIET": "1"}, "",
			"(SNAPANA_JSON sets --json, SNAPANA_QUIET sets --quiet)"},
	} {
		print := func(args string, env env) (string, int) {
			for name, value := range env {
				t.Setenv(name, value)
			}
			var out bytes.Buffer
			code := run(t.Context(), strings.Fields(args), nil, &out, &out)
			for name := range maps.Keys(env) {
				t.Setenv(name, "")
			}
			return out.String(), code
		}
		got, code := print(c.args, c.env)
		if c.err != "" {
			if code != exitInput || !strings.Contains(got, c.err) {
				t.Errorf("%s, %v: exit code %d, %s; want %s", c.args, c.env, code, got, c.err)
			}
			continue
		}
		if want, _ := print(c.same, nil); got != want || code != exitOK {
			t.Errorf("%s, %v: exit code %d\n%s\nwant what %q prints:\n%s", c.args, c.env, code, got, c.same, want)
		}
	}
}
