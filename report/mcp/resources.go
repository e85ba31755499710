package mcp

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/snapana/snapana/report/failure"
	"github.com/snapana/snapana/report/plot"
)

// scheme begins the address of a resource: snapana://FILE/stack/ID.
const scheme = "snapana://"

// skillURI is the text for agents.
const skillURI = scheme + "skill"

// uri is the address of a resource of a file.
func (r *run) uri(kind, id string) string {
	parts := strings.Split(r.name, "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	return scheme + clip(strings.Join(parts, "/"), longText) + "/" + kind + "/" + id
}

func (s *server) addResources(m *sdk.Server) {
	if s.skill != "" {
		m.AddResource(&sdk.Resource{URI: skillURI, Name: "skill", Title: "How to triage with snapana", MIMEType: "text/markdown",
			Description: "Which questions to ask, in which order, and how to read the answers."},
			func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
				return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{
					{URI: skillURI, MIMEType: "text/markdown", Text: s.skill}}}, nil
			})
		m.AddPrompt(&sdk.Prompt{Name: "triage", Title: "Triage of a memory problem",
			Description: "How to find out with these tools what filled a GPU."},
			func(context.Context, *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
				return &sdk.GetPromptResult{Messages: []*sdk.PromptMessage{
					{Role: "user", Content: &sdk.TextContent{Text: s.skill}}}}, nil
			})
	}
	for _, kind := range []struct{ word, id, about, mime string }{
		{"stack", "{id}", "A stack of a snapshot by its id (without \"stack:\"): its frames, and what it allocated.",
			"application/json"},
		{"finding", "{id}", "A finding by its id (without \"finding:\"), with all evidence.", "application/json"},
		{"plot", "{name}", "A picture: timeline.png, categories.png, fragmentation.png, segments.png or stacks.png.",
			"image/png"},
	} {
		m.AddResourceTemplate(&sdk.ResourceTemplate{URITemplate: scheme + "{+file}/" + kind.word + "/" + kind.id, Name: kind.word,
			Description: kind.about, MIMEType: kind.mime}, s.resource)
	}
}

// resource answers a request for a resource.
func (s *server) resource(ctx context.Context, req *sdk.ReadResourceRequest) (out *sdk.ReadResourceResult, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("the answer broke off: %.200v", fault)
		}
	}()
	uri := req.Params.URI
	contents, err := s.contents(ctx, uri)
	if err != nil {
		f := failure.Of(err)
		return nil, fmt.Errorf("%s: %s; %s", f.Code, clip(f.Message, longText), clip(f.Hint, shortText))
	}
	contents.URI = uri
	return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{contents}}, nil
}

func (s *server) contents(ctx context.Context, uri string) (*sdk.ResourceContents, error) {
	rest, ok := strings.CutPrefix(uri, scheme)
	parts := strings.Split(rest, "/")
	if n := len(parts); !ok || n < 3 {
		return nil, failure.Mark(failure.Usage, fmt.Errorf("%s is no resource", clip(uri, shortText)))
	}
	name, err := url.PathUnescape(strings.Join(parts[:len(parts)-2], "/"))
	if err != nil {
		return nil, failure.Mark(failure.Usage, err)
	}
	kind, id := parts[len(parts)-2], parts[len(parts)-1]
	r, err := s.analyze(ctx, fileArgs{File: name}, "")
	if err != nil {
		return nil, err
	}
	p := newPage(mostBytes)
	switch kind {
	case "stack":
		err = r.stackPage("stack:"+id, p)
	case "finding":
		err = r.findingPage("finding:"+id, p)
	case "plot":
		return s.picture(ctx, r, id)
	default:
		err = failure.Mark(failure.Usage, fmt.Errorf("%s is no resource", clip(uri, shortText)))
	}
	if err != nil {
		return nil, err
	}
	return &sdk.ResourceContents{MIMEType: "application/json", Text: string(p.sealed())}, nil
}

// picture draws a picture of the device that reserved most.
func (s *server) picture(ctx context.Context, r *run, name string) (*sdk.ResourceContents, error) {
	kind, ok := strings.CutSuffix(name, ".png")
	var kinds []plot.Kind
	for _, k := range plot.Kinds() {
		kinds = append(kinds, k.Kind)
	}
	if err := oneOf("picture", kind, kinds); err != nil || !ok {
		return nil, failure.Mark(failure.Usage, fmt.Errorf("unknown picture %s; choose from %s, each with .png",
			clip(name, shortText), joined(kinds)))
	}
	v, err := s.shelf.get(ctx, fmt.Sprintf("picture %s %s", r.key, kind), r.stamp, func(context.Context) (any, error) {
		d, err := r.device(nil)
		if err != nil {
			return nil, err
		}
		p, err := plot.Of(plot.Kind(kind), r.Result, d, nil)
		if err != nil {
			return nil, failure.Mark(failure.NoData, err)
		}
		var b bytes.Buffer
		err = p.Write(&b, plot.Medium{})
		return b.Bytes(), err
	})
	if err != nil {
		return nil, err
	}
	return &sdk.ResourceContents{MIMEType: "image/png", Blob: v.([]byte)}, nil
}
