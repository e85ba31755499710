package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// noArgs is the rule of the commands that take flags only.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%s takes no arguments, got %q", cmd.Name(), args[0])
	}
	return nil
}

// oneFile is the rule of the commands that read a snapshot.
func oneFile(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return fmt.Errorf("%s takes one FILE, got %d; `snapana ranks` compares the snapshots of a distributed run",
			cmd.Name(), len(args))
	}
	return needs(1, 1, "one FILE (or - for standard input)")(cmd, args)
}

// many is no bound on arguments.
const many = math.MaxInt

// needs is the rule of a command that takes from least to most arguments, which are what it needs;
// a # in it is how many came.
func needs(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if n := len(args); n < least || n > most {
			return fmt.Errorf("%s needs %s; see `%s --help`", cmd.Name(),
				strings.ReplaceAll(what, "#", strconv.Itoa(n)), cmd.CommandPath())
		}
		return nil
	}
}
