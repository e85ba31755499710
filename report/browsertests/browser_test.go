package browsertests

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/fixtures/analyzetest"
	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/fixtures/buildtest"
	"github.com/snapana/snapana/report/html"
	"github.com/snapana/snapana/snapshot/load"
)

// chromium is one browser for all tests; each page is a tab of its own.
var chromium context.Context

func TestMain(m *testing.M) {
	path, err := exec.LookPath("chromium")
	if err != nil {
		fmt.Fprintln(os.Stderr, "the browser tests need chromium:", err)
		os.Exit(1)
	}
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox,
		chromedp.DisableGPU,
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true),
		chromedp.Flag("hide-scrollbars", true))
	alloc, stop := chromedp.NewExecAllocator(context.Background(), opts...)
	ctx, cancel := chromedp.NewContext(alloc)
	if err := chromedp.Do(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "start chromium:", err)
		os.Exit(1)
	}
	chromium = ctx
	code := m.Run()
	cancel()
	stop()
	os.Exit(code)
}

// golden are snapshots of real programs.
func golden(t testing.TB, name string) *analyze.Result {
	t.Helper()
	path := filepath.Join("../../fixtures", name+".pickle")
	s, err := load.Open(t.Context(), path, load.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return analyzetest.Run(t, s, analyze.Options{})
}

// random is a made-up program.
func random(t testing.TB, seed uint64, opt build.RandomOptions) *analyze.Result {
	t.Helper()
	return analyzetest.Run(t, buildtest.Read(t, build.Random(seed, opt)), analyze.Options{NoReplay: true})
}

// settings say how a page is looked at.
type settings struct {
	width, height int // 0 is 1180 by 900
	dark          bool
	noScript      bool
	size          int // of the page, 0 for the default
	phone         bool
}

// page is an open report.
type page struct {
	testing.TB
	ctx     context.Context
	result  *analyze.Result
	address string

	mu       sync.Mutex
	faults   []string // errors and warnings of the console, exceptions, dialogs
	requests []string // but for the page itself
}

// open writes the report on r and opens it from disk.
func open(t testing.TB, r *analyze.Result, set settings) *page {
	t.Helper()
	var b bytes.Buffer
	if set.size == 0 {
		set.size = html.DefaultBytes
	}
	if err := html.Write(&b, r, set.size); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return visit(t, r, (&url.URL{Scheme: "file", Path: path}).String(), set)
}

// visit opens the report on r that is at an address.
func visit(t testing.TB, r *analyze.Result, address string, set settings) *page {
	t.Helper()
	tab, closeTab := chromedp.NewContext(chromium)
	ctx, cancel := context.WithTimeout(tab, 3*time.Minute)
	t.Cleanup(func() { cancel(); closeTab() })
	file, _, _ := strings.Cut(address, "#")
	p := &page{TB: t, ctx: ctx, result: r, address: file}
	p.run() // opens the tab
	if err := chromedp.Listen(ctx, p.hear); err != nil {
		t.Fatal(err)
	}
	if set.width == 0 {
		set.width, set.height = 1180, 900
	}
	p.run(
		command(network.Enable, network.EnableParams{}),
		command(log.Enable, cdp.Empty{}),
		command(emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: int64(set.width),
			Height: int64(set.height), DeviceScaleFactor: 1, Mobile: set.phone}),
		p.scheme(set.dark),
		command(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: set.noScript}),
		chromedp.Navigate(address))
	if !set.noScript {
		p.run(chromedp.WaitReady(chromedp.CSS("html.ready")))
	}
	return p
}

// scheme makes the system light or dark.
func (p *page) scheme(dark bool) chromedp.Action[chromedp.Void] {
	value := "light"
	if dark {
		value = "dark"
	}
	features := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: value}}
	return command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features})
}

// command is a command of the protocol without a result.
func command[P, R any](c cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, c, params)
		return err
	})
}

func (p *page) hear(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		var words []string
		for _, a := range e.Args {
			words = append(words, string(a.Value)+a.Description)
		}
		p.faults = append(p.faults, fmt.Sprintf("console.%s: %s", e.Type, strings.Join(words, " ")))
	case *runtime.EventExceptionThrown:
		p.faults = append(p.faults, fmt.Sprintf("exception: %s %+v", e.ExceptionDetails.Text,
			e.ExceptionDetails.Exception))
	case *log.EventEntryAdded:
		p.faults = append(p.faults, fmt.Sprintf("%s: %s", e.Entry.Level, e.Entry.Text))
	case *cdppage.EventJavascriptDialogOpening:
		p.faults = append(p.faults, "dialog: "+e.Message)
	case *network.EventRequestWillBeSent:
		if u := e.Request.URL; u != p.address && !strings.HasPrefix(u, p.address+"window?") &&
			!strings.HasPrefix(u, "blob:") {
			p.requests = append(p.requests, u)
		}
	}
}

func (p *page) run(actions ...chromedp.Action[chromedp.Void]) {
	p.Helper()
	if err := chromedp.Do(p.ctx, actions...); err != nil {
		p.Fatal(err)
	}
}

// eval gives the value of a JavaScript expression.
func eval[T any](p *page, expression string, args ...any) T {
	p.Helper()
	v, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](fmt.Sprintf(expression, args...), chromedp.EvalAwaitPromise))
	if err != nil {
		p.Fatalf("%s: %v", expression, err)
	}
	return v
}

// do runs a script, and waits until what it changed is drawn.
func (p *page) do(script string, args ...any) {
	p.Helper()
	eval[bool](p, "(async () => { %s; await new Promise(f => requestAnimationFrame(() => requestAnimationFrame(f))); "+
		"return true; })()", fmt.Sprintf(script, args...))
}

// quiet fails when the page complained, or asked the network for something.
func (p *page) quiet() {
	p.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.faults) > 0 {
		p.Errorf("the page complains: %q", p.faults)
	}
	if len(p.requests) > 0 {
		p.Errorf("the page asks for %q", p.requests)
	}
}

// picture saves the page, or what of it fits into a screen.
func (p *page) picture(name string) {
	p.Helper()
	dir := os.Getenv("SNAPANA_SCREENSHOTS")
	if dir == "" {
		return
	}
	png, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		p.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		p.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644); err != nil {
		p.Fatal(err)
	}
}
