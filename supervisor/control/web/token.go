package web

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"
	"time"
)

// access decides who may ask what.
type access struct {
	cfg     *Config
	guesses guesses
	names   *names
	complaints
}

// token tells whether the token that is shown is the right one, and does nothing.
func (a *access) token(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, map[string]bool{"permitted": true})
}

// mayChange tells whether who asks has shown the token of those who change something, and answers if not. A browser shows a
// password also where another site has it ask: only a Bearer token counts, which no site but ours can send.
func (a *access) mayChange(w http.ResponseWriter, r *http.Request) bool {
	if a.cfg.Token == nil {
		refuse(w, http.StatusForbidden, "nothing can be changed here: http.token_file is not set")
		return false
	}
	var wanted []string
	if from := origin(r.RemoteAddr); !a.guesses.waits(from, time.Now()) { // no file is read for those who guess
		want, err := a.cfg.Token()
		if err != nil {
			a.unreadable.Say(from, "error", err)
			refuse(w, http.StatusForbidden, "nothing can be changed here: the token cannot be read")
			return false
		}
		wanted = append(wanted, want)
	}
	got, _ := shown(r)
	return a.permitted(w, r, got, wanted, "show the token: Authorization: Bearer TOKEN", `Bearer realm="understudy"`)
}

// mayLook is mayChange for what changes nothing: without a token of those who look, everybody may.
func (a *access) mayLook(w http.ResponseWriter, r *http.Request) bool {
	if a.cfg.ReadToken == nil {
		return true
	}
	from := origin(r.RemoteAddr)
	got, password := shown(r)
	if got == "" {
		got = password
	}
	var wanted []string
	if got != "" && !a.guesses.waits(from, time.Now()) {
		for _, read := range []func() (string, error){a.cfg.ReadToken, a.cfg.Token} {
			if read == nil {
				continue
			}
			want, err := read()
			if err != nil {
				a.unreadable.Say(from, "error", err)
				continue
			}
			wanted = append(wanted, want)
		}
	}
	return a.permitted(w, r, got, wanted, "show a token: Authorization: Bearer TOKEN, or as the password of a browser",
		`Basic realm="understudy", charset="UTF-8"`, `Bearer realm="understudy"`)
}

// shown is what a request shows: a bearer token, or a password.
func shown(r *http.Request) (token, password string) {
	_, password, _ = r.BasicAuth()
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		token = ""
	}
	return strings.TrimSpace(token), password
}

// permitted tells whether one of the wanted tokens was shown, and answers if not.
func (a *access) permitted(w http.ResponseWriter, r *http.Request, got string, wanted []string, words string, challenges ...string) bool {
	from, count := origin(r.RemoteAddr), a.cfg.Board.metrics.unserved
	if got != "" { // a browser asks without one first: that is no guess
		switch a.guesses.judge(from, time.Now(), func() bool { return isOne(got, wanted) }) {
		case right:
			return true
		case tooMany:
			count.WithLabelValues("too many wrong tokens").Inc()
			a.wrong.Say(from, "looked_at", false)
			w.Header().Set("Retry-After", "2")
			refuse(w, http.StatusTooManyRequests, "too many wrong tokens: wait 2 s")
			return false
		}
		count.WithLabelValues("wrong token").Inc()
		a.wrong.Say(from, "looked_at", true)
	}
	for _, challenge := range challenges {
		w.Header().Add("WWW-Authenticate", challenge)
	}
	refuse(w, http.StatusUnauthorized, words)
	return false
}

// isOne takes the same time wherever two tokens differ, and whichever it is.
func isOne(got string, wanted []string) bool {
	sum, same := sha256.Sum256([]byte(got)), 0
	for _, want := range wanted {
		b := sha256.Sum256([]byte(want))
		if want != "" {
			same |= subtle.ConstantTimeCompare(sum[:], b[:])
		}
	}
	return same == 1
}
