package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// variable is what the environment calls a flag: SNAPANA_MAX_PAGE is the default of --max-page.
func variable(flag string) string {
	return "SNAPANA_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// rivals are flags of which a command takes one: where its line has one, the variables of the others are not asked.
var rivals = [][]string{{"quiet", "json", "format", "brief"}, {"nvml", "readings"}, {"sweep", "conf"}, {"dump", "record"}}

// fromVariables gives flags that the line does not have the values of their variables, as if they stood there.
func fromVariables(cmd *cobra.Command) error {
	given := func(name string) bool { return cmd.Flags().Changed(name) }
	var set []*pflag.Flag
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		for _, group := range rivals {
			if slices.Contains(group, f.Name) && slices.ContainsFunc(group, given) {
				return
			}
		}
		if f.Name == "cache" {
			return // SNAPANA_CACHE is the folder of answers, for all commands
		}
		if !f.Changed && os.Getenv(variable(f.Name)) != "" && f.Name != "help" && f.Name != "version" {
			set = append(set, f)
		}
	})
	for _, f := range set {
		value := os.Getenv(variable(f.Name))
		if err := cmd.Flags().Set(f.Name, value); err != nil {
			var why *pflag.InvalidValueError
			if errors.As(err, &why) {
				err = cmp.Or(why.Unwrap(), err)
			}
			if want := wants[f.Value.Type()]; want != "" {
				err = misuse("expected %s", want)
			}
			return misuse("invalid %s %q, the default of --%s; %w", variable(f.Name), value, f.Name, err)
		}
		f.Annotations = map[string][]string{fromVariable: nil}
	}
	return nil
}

// fromVariable marks flags that have the value of their variable.
const fromVariable = "snapana_variable"

// naming adds to an error about flags which variables have set them.
func naming(err error, cmd *cobra.Command) error {
	var set []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if _, ok := f.Annotations[fromVariable]; ok && names(err.Error(), "--"+f.Name) {
			set = append(set, variable(f.Name)+" sets --"+f.Name)
		}
	})
	if len(set) == 0 {
		return err
	}
	return fmt.Errorf("%w (%s)", err, strings.Join(set, ", "))
}

// names reports whether a text has a flag, and not only one that begins so.
func names(text, flag string) bool {
	for rest := text; ; {
		_, after, ok := strings.Cut(rest, flag)
		if !ok {
			return false
		}
		if after == "" || !strings.ContainsAny(after[:1], "-abcdefghijklmnopqrstuvwxyz") {
			return true
		}
		rest = after
	}
}
