package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/snapana/snapana/report/json"
)

func newSchema() *cobra.Command {
	names, commands := json.Schemas()
	return &cobra.Command{
		Use:   "schema [NAME]",
		Short: "Print the JSON Schema of what --json prints",
		Long: `Print the JSON Schema (draft 2020-12) of one kind of JSON, named as in its field "schema".
Without a NAME, list the kinds and the commands that print them.`,
		Example: `  snapana schema
  snapana schema snapana.report/1 > report.schema.json`,
		ValidArgs: names,
		RunE: func(cmd *cobra.Command, args []string) error {
			w := cmd.OutOrStdout()
			switch len(args) {
			case 0:
				for i, name := range names {
					if _, err := fmt.Fprintf(w, "%-22s snapana %s\n", name, commands[i]); err != nil {
						return written(err)
					}
				}
				return nil
			case 1:
				found, err := json.WriteSchema(w, args[0])
				if !found {
					return unknown("schema", args[0], names)
				}
				return written(err)
			}
			return fmt.Errorf("schema takes one NAME, got %d; see `snapana schema --help`", len(args))
		},
	}
}
