// Package serve shows the page of report/html over loopback, with every allocation at hand: the
// page asks for what it has no room for when a user zooms in.
//
// Others on the machine, and pages from the network in the same browser, must not read what a
// snapshot tells. The server listens on 127.0.0.1 only. Its path begins with a random token,
// without which it answers nothing, but for the browser that it starts itself (browse.go). It
// refuses names of the host that are not its own, which stops pages whose name is made to point
// here. It only reads, and it allows no other origin.
package serve

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/snapana/snapana/analyze"
	"github.com/snapana/snapana/report/html"
	"github.com/snapana/snapana/report/internal/page"
)

// DefaultBytes bounds the page. Nobody mails it, so it may have more than a report.
const DefaultBytes = 64 << 20

// grace is how long requests have to end when the server stops.
const grace = 2 * time.Second

// Server is one page and the windows of its trace.
type Server struct {
	page    []byte
	windows *page.Windows // nil when the page has nothing to zoom into
	token   string
	invited invitation
	busy    chan struct{} // has room for the windows that are made at a time
}

// New makes the page on r, in at most size bytes as html.Write does, with a new token.
func New(r *analyze.Result, size int) (*Server, error) {
	var page bytes.Buffer
	windows, err := html.WriteServed(&page, r, size)
	if err != nil {
		return nil, err
	}
	return &Server{page: page.Bytes(), windows: windows, token: rand.Text(),
		busy: make(chan struct{}, runtime.GOMAXPROCS(0))}, nil
}

// Listen takes a port of 127.0.0.1, a free one for port 0.
func Listen(port int) (net.Listener, error) {
	return net.Listen("tcp4", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
}

// URL is the address of the page at a listener. Who knows it can read the page.
func (s *Server) URL(l net.Listener) string {
	return "http://" + l.Addr().String() + "/" + s.token + "/"
}

// Serve answers until ctx ends, and closes the listener.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	server := &http.Server{
		Handler:           s.Handler(port),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      time.Minute,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
	}
	return Until(ctx, l, server)
}

// Until serves until ctx ends, then waits a little for the last answers, and closes the listener.
func Until(ctx context.Context, l net.Listener, server *http.Server) error {
	server.ErrorLog = log.New(os.Stderr, "snapana: ", 0)
	stop := context.AfterFunc(ctx, func() {
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
		defer cancel()
		if server.Shutdown(late) != nil {
			server.Close()
		}
	})
	defer stop()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}

// Handler answers requests to this port of the loopback.
func (s *Server) Handler(port string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", html.ServedPolicy()+"; frame-ancestors 'none'")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-store")
		if !IsOwn(r.Host, port) {
			http.Error(w, "Unknown host: open the address that snapana printed, on 127.0.0.1:"+port+".",
				http.StatusMisdirectedRequest)
			return
		}
		token, name, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		if token == invitePath && s.invited.accept(name, r) {
			http.Redirect(w, r, "/"+s.token+"/", http.StatusSeeOther)
			return
		}
		if !Same(token, s.token) {
			http.Error(w, "Unknown link: open the whole address that snapana printed.", http.StatusNotFound)
			return
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			h.Set("Allow", "GET, HEAD")
			http.Error(w, "Method not allowed: this server answers GET and HEAD only.", http.StatusMethodNotAllowed)
			return
		}
		switch name {
		case "":
			h.Set("Content-Type", "text/html; charset=utf-8")
			h.Set("Content-Length", strconv.Itoa(len(s.page)))
			w.Write(s.page)
		case "window":
			s.window(w, r)
		case "limit":
			s.limit(w, r)
		default:
			noPage(w)
		}
	})
}

// IsOwn reports whether a request names this port of the loopback: a page whose name was made to point here names that.
func IsOwn(host, port string) bool {
	name, ok := strings.CutSuffix(host, ":"+port)
	return (ok || port == "80") && (name == "127.0.0.1" || name == "localhost")
}

// Same compares secrets, in a time that does not tell where they differ.
func Same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

func noPage(w http.ResponseWriter) {
	http.Error(w, "No such page: open the address that snapana printed.", http.StatusNotFound)
}

// window answers with what the page leaves out of a part of the trace, as page.Windows packs
// it: ?device=0&first=E&last=E&at=E, device by its place in the page.
func (s *Server) window(w http.ResponseWriter, r *http.Request) {
	q := s.query(w, r, "device, first, last and at")
	if q == nil {
		return
	}
	device := q.number("device", 0, s.windows.Len()-1)
	end := s.windows.Events(device) - 1
	first := q.number("first", -1, end)
	last := q.number("last", first, end)
	at := q.number("at", -1, end)
	s.answer(w, r, q, "application/octet-stream", func(context.Context) ([]byte, error) {
		return s.windows.Pack(device, first, last, at)
	})
}

// mostLimit is beyond what any device has, in bytes.
const mostLimit = 1 << 50

// limit answers with how the run fares with another limit, as JSON of page.Rung: ?device=0&setting=0&limit=BYTES, both by
// their places in the page.
func (s *Server) limit(w http.ResponseWriter, r *http.Request) {
	q := s.query(w, r, "device, setting and limit")
	if q == nil {
		return
	}
	device := q.number("device", 0, s.windows.Len()-1)
	settings := s.windows.Settings(device)
	if settings == 0 {
		noPage(w)
		return
	}
	setting := q.number("setting", 0, settings-1)
	limit := q.number("limit", 1, mostLimit)
	s.answer(w, r, q, "application/json", func(ctx context.Context) ([]byte, error) {
		return s.windows.Limit(ctx, device, setting, int64(limit))
	})
}

// query are the parameters of a question. Each must be there once.
type query struct {
	url.Values
	wrong string // what is wrong with the first that is
}

// query reads the parameters; it is nil where the question was answered already.
func (s *Server) query(w http.ResponseWriter, r *http.Request, names string) *query {
	if s.windows == nil {
		noPage(w)
		return nil
	}
	v, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		http.Error(w, "Invalid query: expected "+names+".", http.StatusBadRequest)
		return nil
	}
	return &query{Values: v}
}

// number reads a parameter from least to most.
func (q *query) number(name string, least, most int) int {
	if v := q.Values[name]; len(v) == 1 {
		if n, err := strconv.Atoi(v[0]); err == nil && n >= least && n <= most {
			return n
		}
	}
	if q.wrong == "" {
		q.wrong = fmt.Sprintf("Invalid %s: expected one number from %d to %d.", name, least, most)
	}
	return least
}

// answer makes the answer to a question, when it is its turn.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, q *query, kind string,
	make func(context.Context) ([]byte, error)) {
	if q.wrong != "" {
		http.Error(w, q.wrong, http.StatusBadRequest)
		return
	}
	select {
	case s.busy <- struct{}{}:
		defer func() { <-s.busy }()
	case <-r.Context().Done():
		return
	}
	data, err := make(r.Context())
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	w.Write(data)
}
