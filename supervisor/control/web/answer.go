package web

import (
	"encoding/json"
	"net/http"
	"strings"

	"understudy/supervisor/printable"
)

// line answers with one line of text.
func line(w http.ResponseWriter, code int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write([]byte(strings.ReplaceAll(printable.Text(text), "\n", " ") + "\n"))
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
	_, _ = w.Write(append(printable.JSON(text), '\n'))
}

// inBody has the keys of a body in place of the flags that the command line has.
var inBody = strings.NewReplacer("--to NODE --force", `{"to": "NODE", "force": true}`, "--force", `{"force": true}`)

// refuse answers with what is wrong, as JSON.
func refuse(w http.ResponseWriter, code int, text string) {
	answer(w, code, map[string]string{"error": inBody.Replace(text)})
}
