package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/report/serve"
)

func newServe() *cobra.Command {
	var (
		in   inputFlags
		rec  recorderFlags
		port int
		open bool
	)
	cmd := &cobra.Command{
		Use:   "serve FILE",
		Short: "Serve the page of the report, without a limit on its size",
		Long: `Analyze the snapshot in FILE (- for standard input), print an address on 127.0.0.1 and serve
the report's page there until Ctrl-C. Unlike report.html, the page can zoom into every
allocation of a large trace. Nothing is written.

Anyone with this link can read the report; keep it private.`,
		Example: `  snapana serve snapshot.pickle
  snapana serve --open snapshot.pickle
  ssh -L 8321:127.0.0.1:8321 node snapana serve --port 8321 snapshot.pickle`,
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			if port < 0 || port > 65535 {
				return fmt.Errorf("invalid --port %d; expected 1 to 65535, or 0 for any free port", port)
			}
			l, err := serve.Listen(port)
			if err != nil {
				return written(err)
			}
			defer l.Close()
			result, err := rec.analyze(cmd, &in, args[0], analyze.Options{})
			if err != nil {
				return err
			}
			s, err := serve.New(result, serve.DefaultBytes)
			if err != nil {
				return err
			}
			url := s.URL(l)
			if _, err := fmt.Fprintf(cmd.OutOrStdout(), "%s\nPress Ctrl-C to stop.\n", url); err != nil {
				return written(err)
			}
			if open {
				if err := serve.Browse(url); err != nil {
					fmt.Fprintf(cmd.ErrOrStderr(),
						"snapana: could not start a browser (%s); open the address above\n", oneLine(err.Error()))
				}
			}
			return written(s.Serve(cmd.Context(), l))
		},
	}
	in.add(cmd.Flags())
	rec.add(cmd.Flags())
	cmd.Flags().IntVar(&port, "port", 0, "`PORT` to listen on (default: any free port)")
	cmd.Flags().BoolVar(&open, "open", false, "open the page in a browser")
	return cmd
}
