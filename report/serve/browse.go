package serve

import (
	"crypto/rand"
	"crypto/subtle"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"time"
)

// A browser is started with an argument, and all users of a machine see the arguments of all programs. So
// the argument leads to the page, but is of no use to others: where the system tells whose a connection is, it
// has a code that counts once, soon, and for this user only; elsewhere it is a file that only this user
// can read.

// invitation is such a code.
type invitation struct {
	mu    sync.Mutex
	code  string // "" none
	until time.Time
}

// welcome is how long a browser may take to start.
const welcome = 5 * time.Minute

// invitePath comes before a code where otherwise the token is.
const invitePath = "open"

// invite makes the code that is good from now on.
func (i *invitation) invite() string {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.code, i.until = rand.Text(), time.Now().Add(welcome)
	return i.code
}

// accept reports whether code is good, and lets it count no more. Only the user may use it up.
func (i *invitation) accept(code string, r *http.Request) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.code == "" || time.Now().After(i.until) || subtle.ConstantTimeCompare([]byte(code), []byte(i.code)) != 1 {
		return false
	}
	if r.Method != http.MethodGet || !ofUser(r) {
		return false
	}
	i.code = ""
	return true
}

// ofUser reports whether the other end of a connection belongs to the user of this program.
func ofUser(r *http.Request) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	if !ok {
		return false
	}
	remote, err := net.ResolveTCPAddr("tcp4", r.RemoteAddr) // numbers: nothing is asked of a network
	if err != nil {
		return false
	}
	uid, ok := owner(remote, local)
	return ok && uid == os.Getuid()
}

// Browse starts the system's browser with the page that is served at l, and does not wait for it. Forget must be
// called when nothing is served any more.
func (s *Server) Browse(l net.Listener) (forget func(), err error) {
	forget = func() {}
	at := ""
	if tellsOwners {
		at = fmt.Sprintf("http://%s/%s/%s", l.Addr(), invitePath, s.invited.invite())
	} else if at, forget, err = letter(s.URL(l)); err != nil {
		return forget, err
	}
	_, err = start(at)
	return forget, err
}

// start starts the system's browser with an address or the path of a file. failed gets why it could not show it, or nil.
func start(at string) (failed <-chan error, err error) {
	c := exec.Command("xdg-open", at)
	switch runtime.GOOS {
	case "darwin":
		c = exec.Command("open", at)
	case "windows":
		c = exec.Command("rundll32", "url.dll,FileProtocolHandler", at)
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }() // else it stays a zombie
	return ended, nil
}

// soon is how long a program that looks for a browser may take to say that there is none.
const soon = 2 * time.Second

// Show opens a file in the system's browser, as far as can be told within 2 seconds.
func Show(path string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	failed, err := start(path)
	if err != nil {
		return err
	}
	select {
	case err = <-failed:
		return err
	case <-time.After(soon):
		return nil
	}
}

// letter writes a page that leads on to url, which only this user can read.
func letter(url string) (path string, forget func(), err error) {
	dir, err := os.MkdirTemp("", "snapana-") // of mode 0700
	if err != nil {
		return "", func() {}, err
	}
	path = filepath.Join(dir, "open.html")
	page := `<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer">` +
		`<meta http-equiv="refresh" content="0; url=` + url + `"><title>snapana</title>`
	return path, func() { os.RemoveAll(dir) }, os.WriteFile(path, []byte(page), 0o600)
}
