package status

import (
	"encoding/json"
	"net/http"
	"strings"
)

// line answers with one line of text.
func line(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, text)
	_, _ = w.Write([]byte(text + "\n"))
}

// answer answers with JSON.
func answer(w http.ResponseWriter, code int, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		line(w, http.StatusInternalServerError, err.Error())
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(append(text, '\n'))
}

// refuse answers with what is wrong, as JSON.
func refuse(w http.ResponseWriter, code int, text string) {
	answer(w, code, map[string]string{"error": text})
}
