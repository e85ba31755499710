package main

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

func TestSize(t *testing.T) {
	for text, want := range map[string]size{
		"1": 1, "4096": 4096, "10k": 10 << 10, "512MiB": 512 << 20, "8 GB": 8 << 30, "1.5g": 3 << 29, "2T": 2 << 40,
		" 7b ": 7,
	} {
		var s size
		if err := s.Set(text); err != nil || s != want {
			t.Errorf("%q: %d, error %v; want %d", text, s, err, want)
		}
	}
	for _, text := range []string{"", "0", "-1", "0.2", "k", "GiB", "1e400", "NaN", "inf", "9E18G", "1x", "1 2"} {
		var s size
		if err := s.Set(text); err == nil {
			t.Errorf("%q was taken for %d", text, s)
		}
	}
}

// TestFlags holds that a flag is the same in all commands that have it: its letter, its type and what its value is.
func TestFlags(t *testing.T) {
	outputs := "FILE FOLDER NAME" // what a command writes
	first := map[string]string{}
	for _, c := range newRoot().Commands() {
		c.Flags().AddFlagSet(c.InheritedFlags())
		c.Flags().VisitAll(func(f *pflag.Flag) {
			value, _ := pflag.UnquoteUsage(f)
			if f.Name == "output" && strings.Contains(outputs, value) {
				value = "output"
			}
			kind := f.Value.Type()
			switch {
			case c.Name() == "diff" && f.Name == "device":
				kind = "int" // or two of them
			case c.Name() == "fit" && (f.Name == "at" || f.Name == "to"):
				return // of values, not of moments: its examples have both beside the files
			case c.Name() == "export" && f.Name == "to":
				return // a format, of which its name and its examples leave no doubt
			}
			is := fmt.Sprintf("-%s, of type %s, a %s", f.Shorthand, kind, value)
			if was := cmp.Or(first[f.Name], is); was != is {
				t.Errorf("--%s of %s is %s, and elsewhere %s", f.Name, c.Name(), is, was)
			}
			first[f.Name] = is
			if variable(f.Name) == "SNAPANA_CACHE" && c.Name() != "mcp" { // fromVariables leaves that one out
				t.Errorf("--%s of %s has the variable that names the folder of answers", f.Name, c.Name())
			}
		})
	}
	if len(first) < 40 {
		t.Errorf("only %d flags", len(first))
	}
}
