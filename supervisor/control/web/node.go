package web

import (
	"fmt"
	"net/http"
	"net/url"

	"understudy/supervisor/control"
	"understudy/supervisor/printable"
)

// healthz says that the process is alive.
func (s *Server) healthz(w http.ResponseWriter, _ *http.Request) { line(w, http.StatusOK, "ok") }

// readyz says that this node could run something.
func (s *Server) readyz(w http.ResponseWriter, _ *http.Request) {
	if s.cfg.Board.left() <= 0 {
		line(w, http.StatusServiceUnavailable, "no session with ZooKeeper whose lease lasts")
		return
	}
	line(w, http.StatusOK, "ok")
}

// active tells a load balancer whether a service does its work here.
func (s *Server) active(w http.ResponseWriter, r *http.Request) {
	known, why := s.cfg.Board.serving(r.PathValue("service"))
	part(w, r, "active", known, why)
}

// follower tells a load balancer whether clients may read from this node's copy of a replicated service.
func (s *Server) follower(w http.ResponseWriter, r *http.Request) {
	var wish control.ReadWish
	asked, wrong := url.ParseQuery(r.URL.RawQuery)
	if wrong != nil || asked.Has("lag") {
		lag, fits, err := printable.ParseSize(asked.Get("lag"))
		if wrong != nil || err != nil || !fits {
			line(w, http.StatusBadRequest, "lag is not a size such as 512KiB, 50MiB, 1GiB or a number of bytes")
			return
		}
		wish.Lag = &lag
	}
	known, why := s.cfg.Board.following(r.PathValue("service"), wish)
	part(w, r, "follower", known, why)
}

// sync tells a load balancer whether this node's copy of a replicated service has every write that was acknowledged.
func (s *Server) sync(w http.ResponseWriter, r *http.Request) {
	known, why := s.cfg.Board.following(r.PathValue("service"), control.ReadWish{All: true})
	part(w, r, "sync", known, why)
}

// part says that this node's part in a service is this one, or why not.
func part(w http.ResponseWriter, r *http.Request, name string, known bool, why string) {
	switch {
	case !known:
		line(w, http.StatusNotFound, fmt.Sprintf("no service %q on this node", r.PathValue("service")))
	case why != "":
		line(w, http.StatusServiceUnavailable, why)
	default:
		line(w, http.StatusOK, name)
	}
}
