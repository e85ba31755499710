package serve_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/fixtures/analyzetest"
	"github.com/snapana/snapana/fixtures/build"
	"github.com/snapana/snapana/fixtures/buildtest"
	"github.com/snapana/snapana/report/serve"
)

// start serves a small trace and gives the address of its page.
func start(t *testing.T) string {
	t.Helper()
	return startOn(t, analyze.Options{NoReplay: true})
}

func startOn(t *testing.T, opt analyze.Options) string {
	t.Helper()
	s, err := serve.New(analyzetest.Run(t, buildtest.Read(t, build.Random(1, build.RandomOptions{Events: 500})), opt),
		serve.DefaultBytes)
	if err != nil {
		t.Fatal(err)
	}
	l, err := serve.Listen(0)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l) }()
	t.Cleanup(func() {
		stop()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("the server ends with %v", err)
			}
		case <-time.After(10 * time.Second):
			t.Error("the server does not stop")
		}
	})
	return s.URL(l)
}

func ask(t *testing.T, method, url, host string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequest(method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if host != "" {
		r.Host = host
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

// Only who knows the token and names the server as itself reads anything.
func TestRefusals(t *testing.T) {
	url := start(t)
	root := url[:strings.LastIndex(strings.TrimSuffix(url, "/"), "/")+1]
	port := url[strings.LastIndex(url, ":"):][:strings.Index(url[strings.LastIndex(url, ":"):], "/")]
	const window = "window?device=0&first=0&last=9&at=3"
	for _, c := range []struct {
		method, url, host string
		status            int
	}{
		{"GET", url, "", 200},
		{"HEAD", url, "", 200},
		{"GET", url, "localhost" + port, 200},
		{"GET", url + window, "", 200},
		{"HEAD", url + window, "", 200},
		{"GET", root, "", 404},
		{"GET", root + window, "", 404},
		{"GET", root + "AAAAAAAAAAAAAAAAAAAAAAAAAA/", "", 404},
		{"GET", root + "AAAAAAAAAAAAAAAAAAAAAAAAAA/" + window, "", 404},
		{"GET", url + "../etc/passwd", "", 404},
		{"GET", url + "snapshot.pickle", "", 404},
		{"GET", url, "evil.example" + port, 421},
		{"GET", url, "127.0.0.1.evil.example" + port, 421},
		{"GET", url, "127.0.0.1", 421},
		{"GET", url + window, "evil.example", 421},
		{"POST", url, "", 405},
		{"PUT", url + window, "", 405},
		{"DELETE", url, "", 405},
		{"OPTIONS", url, "", 405},
	} {
		resp, body := ask(t, c.method, c.url, c.host)
		if resp.StatusCode != c.status {
			t.Errorf("%s %s of %q: %s, want %d", c.method, c.url, c.host, resp.Status, c.status)
		}
		if c.status != 200 && (strings.Contains(body, url) || len(body) > 200) {
			t.Errorf("%s %s tells %.300q", c.method, c.url, body)
		}
		for name, want := range map[string]string{
			"Cache-Control": "no-store", "Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff",
			"Cross-Origin-Resource-Policy": "same-origin", "Access-Control-Allow-Origin": "",
		} {
			if got := resp.Header.Get(name); got != want {
				t.Errorf("%s %s: %s is %q, want %q", c.method, c.url, name, got, want)
			}
		}
		for _, want := range []string{"default-src 'none'", "connect-src 'self'", "frame-ancestors 'none'"} {
			if p := resp.Header.Get("Content-Security-Policy"); !strings.Contains(p, want) {
				t.Errorf("%s %s: the policy lacks %q: %s", c.method, c.url, want, p)
			}
		}
	}
}

func TestTokensDiffer(t *testing.T) {
	a, b := start(t), start(t)
	if len(a) < len("http://127.0.0.1:1/")+26 || a[len(a)-20:] == b[len(b)-20:] {
		t.Errorf("%s and %s", a, b)
	}
}

// A parameter that cannot be is refused with a line that names it.
func TestParameters(t *testing.T) {
	url := start(t)
	for query, want := range map[string]string{
		"":                                                           "Invalid device: expected one number from 0 to 0",
		"device=1&first=0&last=1&at=0":                               "Invalid device:",
		"device=-1&first=0&last=1&at=0":                              "Invalid device:",
		"device=0&first=-2&last=1&at=0":                              "Invalid first: expected one number from -1 to ",
		"device=0&first=9&last=8&at=0":                               "Invalid last: expected one number from 9 to ",
		"device=0&first=0&last=99999999&at=0":                        "Invalid last:",
		"device=0&first=0&last=1":                                    "Invalid at:",
		"device=0&first=0&last=1&at=0&at=1":                          "Invalid at: expected one number",
		"device=0&first=0&last=1&at=1e3":                             "Invalid at:",
		"device=0&first=0x1&last=1&at=0":                             "Invalid first:",
		"device=0&first=%zz&last=1&at=0":                             "Invalid query: expected",
		"device=0&first=0&last=<script>&at=0":                        "Invalid last:",
		"device=0;first=0&last=1&at=0":                               "Invalid query: expected",
		"device=0&first=0&at=0&last=1" + "0000000000000000000000000": "Invalid last:",
	} {
		resp, body := ask(t, "GET", url+"window?"+query, "")
		if resp.StatusCode != 400 || !strings.HasPrefix(body, want) || strings.Contains(body, "<script>") {
			t.Errorf("?%s: %s %q, want 400 %q", query, resp.Status, body, want)
		}
	}
}

// A window is what it says.
func TestWindow(t *testing.T) {
	resp, body := ask(t, "GET", start(t)+"window?device=0&first=-1&last=9&at=3", "")
	if got := resp.Header.Get("Content-Type"); got != "application/octet-stream" {
		t.Errorf("a window is %s", got)
	}
	n := binary.LittleEndian.Uint32([]byte(body))
	var h struct {
		Version, First, Last, At int
		All                      bool
	}
	if err := json.NewDecoder(bytes.NewReader([]byte(body[4 : 4+n]))).Decode(&h); err != nil {
		t.Fatal(err)
	}
	if h.Version != 4 || h.First != -1 || h.Last != 9 || h.At != 3 || !h.All {
		t.Errorf("a window of %+v", h)
	}
}

func TestListenLoopbackOnly(t *testing.T) {
	l, err := serve.Listen(0)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	a := l.Addr().(*net.TCPAddr)
	if !a.IP.Equal(net.IPv4(127, 0, 0, 1)) || a.Port == 0 {
		t.Errorf("listens on %v", a)
	}
	if again, err := serve.Listen(a.Port); err == nil {
		again.Close()
		t.Error("a taken port is taken again")
	}
}

// A question for a limit is answered with a replay, and only where there was one.
func TestLimit(t *testing.T) {
	url := startOn(t, analyze.Options{})
	for query, want := range map[string]struct {
		status int
		part   string
	}{
		"device=0&setting=0&limit=2097152":      {200, `"limit":2097152`},
		"device=0&setting=0&limit=100000000000": {200, `"failed":-1`},
		"device=0&setting=0&limit=0":            {400, "Invalid limit: expected one number from 1 "},
		"device=0&setting=99&limit=9":           {400, "Invalid setting"},
		"device=1&setting=0&limit=9":            {400, "Invalid device"},
		"device=0&setting=0":                    {400, "Invalid limit"},
		"device=0&setting=0&limit=9&limit=9":    {400, "Invalid limit"},
		"device=0&setting=0&limit=1e9":          {400, "Invalid limit"},
		"device=%zz":                            {400, "Invalid query"},
	} {
		if resp, body := ask(t, "GET", url+"limit?"+query, ""); resp.StatusCode != want.status ||
			!strings.Contains(body, want.part) {
			t.Errorf("%s: %s %q, want %d and %q", query, resp.Status, body, want.status, want.part)
		}
	}
	if resp, body := ask(t, "GET", start(t)+"limit?device=0&setting=0&limit=9", ""); resp.StatusCode != 404 {
		t.Errorf("without a replay: %s %q", resp.Status, body)
	}
}
