package main

import (
	"crypto/rand"
	_ "embed"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/snapana/snapana/report/mcp"
	"github.com/snapana/snapana/report/serve"
	"github.com/snapana/snapana/report/text"
	"github.com/snapana/snapana/snapshot/budget"
)

//go:embed AGENTS.md
var skill string

// tokenVariable has the token that clients of the server must send, where no file has it.
const tokenVariable = "SNAPANA_MCP_TOKEN"

// leastToken is how long a token must be that a user chooses.
const leastToken = 16

func newMCP() *cobra.Command {
	var (
		roots     []string
		cache     = size(mcp.DefaultCache)
		http      string
		tokenFile string
		skills    bool
	)
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Answer an agent's questions about snapshots (Model Context Protocol)",
		Long: `Serve read-only tools to an agent by the Model Context Protocol, over standard input and
output: report, state, ghosts, whatif, fit, diff, oom, ranks and at. Each answer is at most
8 KB, begins with the verdict, and lists the calls that lead on. Files are read below the
given folders only, and nothing is written.

With --http the server listens on 127.0.0.1 instead and answers only who sends the token.`,
		Example: `  snapana mcp
  snapana mcp --root /scratch/dumps --root ~/runs
  snapana mcp --http 127.0.0.1:8322 --token-file ~/.snapana-token
  snapana mcp --skill > SKILL.md`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			w := cmd.OutOrStdout()
			if skills {
				_, err := io.WriteString(w, skill)
				return written(err)
			}
			ctx := cmd.Context()
			token, err := mcpToken(http, tokenFile)
			if err != nil {
				return err
			}
			if len(roots) == 0 {
				roots = []string{"."}
			}
			s, err := mcp.New(ctx, mcp.Options{Roots: roots, Cache: int64(cache), Version: toolVersion(), Skill: skill,
				Guard: guarded})
			if err != nil {
				return err
			}
			budget.From(ctx).Finish() // each question has bounds of its own
			debug.SetGCPercent(100)
			debug.SetMemoryLimit(math.MaxInt64)
			if http == "" {
				return written(s.Run(ctx, io.NopCloser(cmd.InOrStdin()), open{w}))
			}
			l, err := loopback(http)
			if err != nil {
				return err
			}
			defer l.Close()
			said := fmt.Sprintf("http://%s%s\nAuthorization: Bearer %s\nPress Ctrl-C to stop.\n", l.Addr(), mcp.Path, token)
			if _, err := io.WriteString(w, said); err != nil {
				return written(err)
			}
			return written(s.Serve(ctx, l, token))
		},
	}
	fl := cmd.Flags()
	fl.StringArrayVar(&roots, "root", nil, "`FOLDER` below which files may be read (repeatable; default: the\n"+
		"current one), or s3://BUCKET/FOLDER")
	fl.Var(&cache, "cache", "`SIZE` that analyzed snapshots may take in memory, to answer again")
	fl.Lookup("cache").DefValue = "1GiB"
	fl.StringVar(&http, "http", "", "listen on `ADDRESS`, like 127.0.0.1:8322 (port 0: any that is free)")
	fl.StringVar(&tokenFile, "token-file", "", "`FILE` with the token for --http (default: that in\n"+tokenVariable+", or a new one)")
	fl.BoolVar(&skills, "skill", false, "print how to triage with snapana, for agents (a SKILL.md), and end")
	return cmd
}

// open is a writer that its user cannot close.
type open struct{ io.Writer }

func (open) Close() error { return nil }

// loopback listens on an address of this machine that others do not reach.
func loopback(address string) (net.Listener, error) {
	host, port, err := net.SplitHostPort(address)
	n, bad := strconv.Atoi(port)
	if err != nil || bad != nil || n < 0 || n > 65535 || host != "127.0.0.1" && host != "localhost" {
		return nil, misuse("invalid --http %q; expected 127.0.0.1:PORT: other addresses can be reached from outside", address)
	}
	l, err := serve.Listen(n)
	return l, written(err)
}

// mcpToken is what clients over HTTP must send.
func mcpToken(http, file string) (string, error) {
	token, from := os.Getenv(tokenVariable), tokenVariable
	switch {
	case file != "" && http == "":
		return "", misuse("--token-file needs --http")
	case http == "":
		return "", nil
	case file != "":
		const most = 4 << 10
		f, err := os.Open(file)
		if err != nil {
			return "", err
		}
		defer f.Close()
		data, err := io.ReadAll(io.LimitReader(f, most))
		if err != nil {
			return "", err
		}
		token, from = strings.TrimSpace(string(data)), file
	case token == "":
		return rand.Text(), nil
	}
	if len(token) < leastToken || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", misuse("%s has no token: expected %d or more letters and digits in one line", text.Arg(from), leastToken)
	}
	return token, nil
}

// guarded is a Guard: it holds the work on a question within what package budget promises for its input, as watch holds
// a command.
func guarded(m *budget.Meter, refuse func(error)) (stop func()) {
	u := openUsage()
	memory, cpu := u.now()
	known := int64(-1)
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(often)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			n := m.Bytes()
			if n == 0 {
				continue
			}
			if n != known {
				// Garbage alone is never refused.
				debug.SetMemoryLimit(memory + (budget.Memory(n)-ahead)*16/17 - notHeap)
				known = n
			}
			now, took := u.now()
			if over := excess(n, now-memory, took-cpu); over != "" {
				refuse(mcp.Refused(over))
				debug.FreeOSMemory()
				return
			}
		}
	}()
	return func() {
		close(done)
		<-ended
		debug.SetMemoryLimit(math.MaxInt64)
		u.close()
	}
}
