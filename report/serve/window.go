package serve

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
)

// window answers with what the page leaves out of a part of the trace, as detail.Windows packs
// it: ?device=0&first=E&last=E&at=E, device by its place in the page.
func (s *Server) window(w http.ResponseWriter, r *http.Request) {
	if s.windows == nil {
		http.NotFound(w, r)
		return
	}
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		http.Error(w, "the query cannot be read", http.StatusBadRequest)
		return
	}
	device, err := number(q, "device", 0, s.windows.Len()-1)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	end := s.windows.Events(device) - 1
	first, err := number(q, "first", -1, end)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	last, err := number(q, "last", first, end)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	at, err := number(q, "at", -1, end)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
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

// number reads a parameter that must be there once, from least to most.
func number(q url.Values, name string, least, most int) (int, error) {
	if len(q[name]) == 1 {
		if v, err := strconv.Atoi(q[name][0]); err == nil && v >= least && v <= most {
			return v, nil
		}
	}
	return 0, fmt.Errorf("%s must be one number from %d to %d", name, least, most)
}
