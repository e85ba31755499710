// Package mcp answers the questions of agents about snapshots, by the Model Context Protocol.
//
// An answer is made for a reader with little room: the verdict first, then figures in bytes and in words, at most so many
// bytes as the caller allows, and the exact calls that lead on. Lists are cut at whole items, and what is left out is
// named. All judgments and sentences come from package analyze and the other reports.
//
// Who asks is not trusted, nor is what it asks about. Files are read below the given folders only, and nothing is
// written (roots.go). Work is watched, stopped when it takes too much, and what breaks in it ends with an error of that
// call (shelf.go). Texts of a snapshot are clipped and cleaned (answer.go). Over HTTP only who has the token gets an
// answer (http.go).
package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/snapana/snapana/analyze/units"
	"github.com/snapana/snapana/report/failure"
)

// Options of a server.
type Options struct {
	Roots   []string // folders below which files may be read, and s3://BUCKET/FOLDER
	Cache   int64    // bytes that results may take which are kept, about; 0 keeps none
	Version string   // of the program
	Skill   string   // how to triage with these tools, a text for agents
	Guard   Guard    // watches the work on files, nil for nobody
}

// Server answers.
type Server struct{ mcp *sdk.Server }

type server struct {
	roots *roots
	shelf *shelf
	skill string
}

// instructions are what a client is told at once.
const instructions = `Questions about PyTorch CUDA memory snapshots. Begin with report: its verdict says what is wrong. ` +
	`Then make the calls that its field "more" lists. "left_out" says what an answer had no room for. Paths are relative to ` +
	`the server's folders; report with the file "." lists the snapshots there.`

// New makes a server, which may be used until ctx ends.
func New(ctx context.Context, opt Options) (*Server, error) {
	roots, err := openRoots(ctx, opt.Roots)
	if err != nil {
		return nil, err
	}
	s := &server{roots: roots, skill: opt.Skill,
		shelf: &shelf{ctx: ctx, most: opt.Cache, guard: opt.Guard, busy: make(chan struct{}, 1)}}
	m := sdk.NewServer(&sdk.Implementation{Name: "snapana", Title: "snapana", Version: opt.Version},
		&sdk.ServerOptions{Instructions: instructions, Capabilities: &sdk.ServerCapabilities{}})
	m.AddReceivingMiddleware(checked)
	tool(m, "report", "Verdict on a snapshot: what filled the GPU, why, and what to do. Figures of each GPU and findings with "+
		"ids; with an id, all about that finding. For a folder: the snapshots in it.", s.report)
	tool(m, "state", "What was live at a moment (peak, end, oom, an event, a step), grouped by code, stack, module, category "+
		"or others, largest first.", s.state)
	tool(m, "ghosts", "Leaks: memory that loops leave behind, and the Python objects that keep it alive, each with a fix.",
		s.ghosts)
	tool(m, "whatif", "Replays the run under other allocator settings, on a GPU of another size, or with changes of the "+
		"program; or searches for the cheapest changes with which it fits.", s.whatif)
	tool(m, "fit", "Predicts the peak at other batch sizes or sequence lengths from recordings at a few, and the largest that "+
		"fits.", s.fit)
	tool(m, "diff", "Compares the memory of two snapshots, or two moments of one: what grew, what shrank, and why.", s.diff)
	tool(m, "oom", "Explains an out-of-memory error, from a training log or from a snapshot.", s.oom)
	tool(m, "ranks", "Compares the snapshots of a distributed run: which rank failed first, which one uses more, and where.",
		s.ranks)
	tool(m, "at", "Who lived at an address, now, before and after a moment (illegal memory accesses); or, with the id of a "+
		"stack, what that stack allocated.", s.at)
	s.addResources(m)
	return &Server{m}, nil
}

// Run answers one client until it goes, or ctx ends: over r and w, one message a line.
func (s *Server) Run(ctx context.Context, r io.ReadCloser, w io.WriteCloser) error {
	err := s.mcp.Run(ctx, &sdk.IOTransport{Reader: r, Writer: w})
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// checked keeps what the SDK says of bad requests in order.
func checked(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		if p, ok := req.GetParams().(*sdk.ReadResourceParams); ok && p != nil &&
			strings.ContainsFunc(p.URI, func(r rune) bool { return r <= ' ' || r > '~' }) {
			// The SDK would put it into an answer that is no JSON, and end the session.
			return nil, fmt.Errorf("%s: the address of a resource has signs that must be written as %%20 is", failure.Usage)
		}
		out, err := next(ctx, method, req)
		if r, ok := out.(*sdk.CallToolResult); ok && r != nil && r.IsError && len(r.Content) == 1 {
			// It has its own words, without a code, for arguments that do not agree with the schema.
			if text, ok := r.Content[0].(*sdk.TextContent); ok && !strings.HasPrefix(text.Text, "{") {
				return failed(failure.Mark(failure.Usage, errors.New(text.Text))), err
			}
		}
		return out, err
	}
}

// asked is the arguments of a tool.
type asked interface{ most() (int, error) }

// tool adds a tool. Its function puts an answer together.
func tool[In asked](m *sdk.Server, name, about string, answer func(context.Context, In, *page) error) {
	no := false
	t := &sdk.Tool{Name: name, Description: about, Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true,
		DestructiveHint: &no, OpenWorldHint: &no}}
	sdk.AddTool(m, t, func(ctx context.Context, _ *sdk.CallToolRequest, in In) (out *sdk.CallToolResult, _ any, _ error) {
		defer func() {
			if fault := recover(); fault != nil {
				out = failed(failure.Mark(failure.Failed, fmt.Errorf("the answer broke off: %.200v", fault)))
			}
		}()
		most, err := in.most()
		if err == nil {
			p := newPage(most)
			if err = answer(ctx, in, p); err == nil {
				return answered(p.sealed()), nil, nil
			}
		}
		return failed(err), nil, nil
	})
}

// capacity is an argument: the size of a device, "" unknown.
type capacity string

func (c capacity) bytes(name string) (int64, error) {
	if c == "" {
		return 0, nil
	}
	n, ok := units.ParseSize(string(c))
	if !ok || n < 1 {
		return 0, failure.Mark(failure.Usage, fmt.Errorf("invalid %s %q; expected a size like 512MiB or 80GiB", name,
			clip(string(c), shortText)))
	}
	return n, nil
}

// lead adds the calls that lead on, which must have room.
func (p *page) lead(calls ...call) {
	p.list("more", len(calls), 70, func(i int) any { return calls[i] })
}
