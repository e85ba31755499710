package mcp

import (
	"context"
	"net"
	"net/http"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/snapana/snapana/report/serve"
)

// Path is where a server answers over HTTP.
const Path = "/mcp"

// idle is how long a session may go without a request.
const idle = time.Hour

// Serve answers over HTTP who has the token, until ctx ends, and closes the listener, which must be of the loopback.
func (s *Server) Serve(ctx context.Context, l net.Listener, token string) error {
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return err
	}
	return serve.Until(ctx, l, &http.Server{
		Handler:           s.Handler(port, token),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       time.Minute,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
	})
}

// Handler answers requests to this port of the loopback. A page in a browser must not come here, be it of another origin
// or of a name that was made to point to this machine; nor who does not have the token.
func (s *Server) Handler(port, token string) http.Handler {
	answers := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s.mcp },
		&sdk.StreamableHTTPOptions{JSONResponse: true, SessionTimeout: idle, MaxRequestBodyBytes: 1 << 20,
			PropagateRequestCancellation: true})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-store")
		origin := r.Header.Values("Origin")
		switch own := serve.IsOwn(r.Host, port); {
		case !own:
			http.Error(w, "Unknown host: use the address that snapana printed.", http.StatusMisdirectedRequest)
		case len(origin) > 1 || len(origin) == 1 && origin[0] != "http://"+r.Host:
			http.Error(w, "Unknown origin: pages of other addresses get no answer.", http.StatusForbidden)
		case !hasToken(r.Header.Get("Authorization"), token):
			h.Set("WWW-Authenticate", "Bearer")
			http.Error(w, "Unknown token: send the header that snapana printed.", http.StatusUnauthorized)
		case r.URL.Path != Path:
			http.Error(w, "No such page: this server answers at "+Path+".", http.StatusNotFound)
		default:
			answers.ServeHTTP(w, r)
		}
	})
}

// hasToken reports whether a request may be answered. The scheme's case is free (RFC 9110, section 11.1).
func hasToken(authorization, token string) bool {
	scheme, given, _ := strings.Cut(authorization, " ")
	return strings.EqualFold(scheme, "Bearer") && serve.Same(strings.TrimLeft(given, " "), token)
}
