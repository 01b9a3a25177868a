package status

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"
)

// token tells whether the token that is shown is the right one, and does nothing.
func (s *Server) token(w http.ResponseWriter, r *http.Request) {
	if s.permitted(w, r) {
		answer(w, http.StatusOK, map[string]bool{"permitted": true})
	}
}

// permitted tells whether who asks has shown the token, and answers if not.
func (s *Server) permitted(w http.ResponseWriter, r *http.Request) bool {
	if s.cfg.Token == nil {
		refuse(w, http.StatusForbidden, "nothing can be changed here: http.token_file is not set")
		return false
	}
	want, err := s.cfg.Token()
	if err != nil {
		s.cfg.Logger.Error("the token of HTTP cannot be read: nobody may change anything", "error", err)
		refuse(w, http.StatusForbidden, "nothing can be changed here: the token cannot be read")
		return false
	}
	scheme, got, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	a, b := sha256.Sum256([]byte(want)), sha256.Sum256([]byte(strings.TrimSpace(got)))
	same := subtle.ConstantTimeCompare(a[:], b[:]) == 1
	if !strings.EqualFold(scheme, "Bearer") || !same || want == "" {
		w.Header().Set("WWW-Authenticate", `Bearer realm="understudy"`)
		refuse(w, http.StatusUnauthorized, "show the token: Authorization: Bearer TOKEN")
		return false
	}
	return true
}
