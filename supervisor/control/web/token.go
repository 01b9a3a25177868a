package web

import (
	"cmp"
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"
	"time"

	"understudy/supervisor/connections"
)

// access decides which requests are served.
type access struct {
	cfg   *Config
	names *names
	complaints
}

// token answers that the token is right: nothing but the right one comes here.
func (a *access) token(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, map[string]bool{"permitted": true})
}

// mayChange reports whether a client has shown the token of those who change something, and answers if not. A browser shows a
// password also where another site has it ask: only a Bearer token counts, which no site but ours can send.
func (a *access) mayChange(w http.ResponseWriter, r *http.Request) bool {
	if a.cfg.Token == nil {
		refuse(w, http.StatusForbidden, "nothing can be changed here: http.token_file is not set")
		return false
	}
	token, _ := shown(r)
	return a.permitted(w, r, token, []string{`Bearer realm="understudy"`}, a.cfg.Token)
}

// mayLook is mayChange for requests that change nothing: without a token for reading, every client may look.
func (a *access) mayLook(w http.ResponseWriter, r *http.Request) bool {
	if a.cfg.ReadToken == nil {
		return true
	}
	token, password := shown(r)
	challenges := []string{`Basic realm="understudy", charset="UTF-8"`, `Bearer realm="understudy"`}
	return a.permitted(w, r, cmp.Or(token, password), challenges, a.cfg.ReadToken, a.cfg.Token)
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

// wrongTokenDelay is how long a wrong token keeps its connection's place, also if the client leaves before the answer: the limits of
// connections are limits of tries a second.
const wrongTokenDelay = time.Second

// permitted reports whether token is one of those in the files, and answers if not. A browser asks without one
// first: that is no wrong token.
func (a *access) permitted(w http.ResponseWriter, r *http.Request, token string, challenges []string,
	files ...func() (string, error)) bool {
	from, read := connections.Address(r.RemoteAddr), false
	for _, file := range files {
		if file == nil {
			continue
		}
		want, err := file()
		if err != nil {
			a.unreadable.Say(from, "error", err)
			continue
		}
		read = true
		if token != "" && same(token, want) {
			return true
		}
	}
	if !read {
		refuse(w, http.StatusForbidden, "the token cannot be read on this node; its log gives the cause")
		return false
	}
	if token != "" {
		a.cfg.Board.metrics.unserved.WithLabelValues("wrong token").Inc()
		a.wrong.Say(from)
		time.Sleep(wrongTokenDelay)
	}
	w.Header()["Www-Authenticate"] = challenges
	why := "a token is needed: Authorization: Bearer TOKEN"
	if token != "" {
		why = "wrong token"
	}
	refuse(w, http.StatusUnauthorized, why)
	return false
}

// same takes the same time wherever two tokens differ, and however long they are.
func same(got, want string) bool {
	a, b := sha256.Sum256([]byte(got)), sha256.Sum256([]byte(want))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}
