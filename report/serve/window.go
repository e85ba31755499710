package serve

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
)

// window answers with what the page leaves out of a part of the trace, as page.Windows packs
// it: ?device=0&first=E&last=E&at=E, device by its place in the page.
func (s *Server) window(w http.ResponseWriter, r *http.Request) {
	if s.windows == nil {
		noPage(w)
		return
	}
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		http.Error(w, "Invalid query: expected device, first, last and at.", http.StatusBadRequest)
		return
	}
	wrong := ""
	// number reads a parameter that must be there once, from least to most.
	number := func(name string, least, most int) int {
		if len(q[name]) == 1 {
			if v, err := strconv.Atoi(q[name][0]); err == nil && v >= least && v <= most {
				return v
			}
		}
		if wrong == "" {
			wrong = fmt.Sprintf("Invalid %s: expected one number from %d to %d.", name, least, most)
		}
		return least
	}
	device := number("device", 0, s.windows.Len()-1)
	end := s.windows.Events(device) - 1
	first := number("first", -1, end)
	last := number("last", first, end)
	at := number("at", -1, end)
	if wrong != "" {
		http.Error(w, wrong, http.StatusBadRequest)
		return
	}
	select {
	case s.busy <- struct{}{}:
		defer func() { <-s.busy }()
	case <-r.Context().Done():
		return
	}
	data, err := s.windows.Pack(device, first, last, at)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	w.Write(data)
}
