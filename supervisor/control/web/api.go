package web

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"understudy/supervisor/control"
)

// showStatus shows the cluster as `understudy status --json` does, and this node besides.
func (s *Server) showStatus(w http.ResponseWriter, r *http.Request) {
	all, err := s.cluster.get(r.Context(), "")
	if err != nil {
		unread(w, err)
		return
	}
	answer(w, http.StatusOK, s.whole(all))
}

// whole is all that is known.
func (s *Server) whole(all control.Status) any {
	return struct {
		Local Local `json:"local"`
		control.Status
	}{s.local(), all}
}

func (s *Server) local() Local {
	l, _ := s.cfg.Board.Local()
	l.Node, l.Version, l.Writable = s.cfg.Node, s.cfg.Version, s.cfg.Token != nil
	return l
}

// mostActivations bounds an answer of which nothing else was said.
const mostActivations = 100

// longestName is that of a service, as the config has it.
const longestName = 128

// showHistory shows what `understudy history --json` does.
func (s *Server) showHistory(w http.ResponseWriter, r *http.Request) {
	number := mostActivations
	if text := r.FormValue("number"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 {
			refuse(w, http.StatusBadRequest, "number must be a number, 0 for all that are kept")
			return
		}
		number = n
	}
	service := r.FormValue("service")
	if len(service) > longestName {
		refuse(w, http.StatusNotFound, "that is too long for a service name")
		return
	}
	list, err := s.history.get(r.Context(), service)
	if err != nil {
		unread(w, err)
		return
	}
	if number > 0 && len(list) > number {
		list = list[:number]
	}
	if list == nil {
		list = []control.HistoryEntry{}
	}
	answer(w, http.StatusOK, map[string]any{"activations": list})
}

// only serves requests that have no other parameters than these: one that is misspelt would get the answer to another question.
func only(h http.HandlerFunc, params ...string) http.HandlerFunc {
	known := cmp.Or(strings.Join(params, ", "), "none")
	return func(w http.ResponseWriter, r *http.Request) {
		for name := range r.URL.Query() {
			if !slices.Contains(params, name) {
				refuse(w, http.StatusBadRequest, fmt.Sprintf("there is no parameter %q: %s has %s", name, r.URL.Path, known))
				return
			}
		}
		h(w, r)
	}
}

// nowhere answers a request that nothing else does.
func nowhere(mux *http.ServeMux, w http.ResponseWriter, r *http.Request) {
	for method, allow := range map[string]string{http.MethodGet: "GET, HEAD", http.MethodPost: "POST"} {
		other := r.Clone(r.Context())
		other.Method = method
		if _, pattern := mux.Handler(other); strings.HasPrefix(pattern, method) {
			w.Header().Set("Allow", allow)
			refuse(w, http.StatusMethodNotAllowed, r.Method+" does not go with "+r.URL.Path+": use "+method)
			return
		}
	}
	refuse(w, http.StatusNotFound, "there is no "+r.URL.Path+
		": below /api/v1 are status, history, events, token, services/SERVICE/ORDER and nodes/NODE/ORDER, and the page is /")
}

// unread answers when the cluster could not be asked.
func unread(w http.ResponseWriter, err error) {
	if errors.Is(err, control.ErrUnknown) {
		refuse(w, http.StatusNotFound, err.Error())
		return
	}
	w.Header().Set("Retry-After", "1")
	refuse(w, http.StatusServiceUnavailable, err.Error())
}
