package e2e

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/must"
)

// Names that lead elsewhere, or break a line of a log, are refused by whatever takes a name, in one line, and leave no trace in
// ZooKeeper. (The agent's question and the breadcrumb are fencing's own tests, the config file's names config's.)
func TestNamesThatLeadElsewhereAreRefused(t *testing.T) {
	p := newPlay(t, stage(t))
	token, _ := secretOf(t, "sesam")
	a := p.Lab.Host(t, "a")
	s := p.FromFile(t, a, p.Config(t, a, "http: {listen: \":8437\", token_file: "+token+"}\n", kit.Command(p.Child())))
	run := p.On(t, soon, "a", 0)
	kit.Until(t, soon, "the history has begun", func() bool {
		names, _, err := p.Conn().Children(p.Path("services", p.Options.Service, "history"))
		return err == nil && len(names) > 0
	})
	kit.Until(t, soon, "HTTP answers", func() bool { return says(t, "http://"+a.Addr+":8437/healthz") == http.StatusOK })
	before := tree(t, p.Conn(), p.Path())
	for _, name := range []string{"..", ".", "../nodes", "../../other", p.Options.Service + "/control", "/", "a\nb", "a\x1b[2J", "", strings.Repeat("x", 5000)} {
		for _, words := range [][]string{
			{"pause", name}, {"resume", name}, {"restart", name}, {"reload", name}, {"switchover", name, "--timeout", soon.String()},
			{"switchover", p.Options.Service, "--to", name, "--timeout", soon.String()}, {"history", name}, {"status", name},
			{"fence", "confirm", name, "--node", "a"}, {"fence", "confirm", p.Options.Service, "--node", name},
			{"run", "--service", name, "--node", "n", "--", "sleep", "1"}, {"run", "--service", "n", "--node", name, "--", "sleep", "1"},
		} {
			if name == "" && slices.Contains([]string{"--to", "--node", "--service"}, words[len(words)-2]) || words[0] == "run" && name == "" {
				continue // that is how nothing is said
			}
			at := len(words)
			if i := slices.Index(words, "--"); i > 0 {
				at = i
			}
			r := a.Ask(t, slices.Insert(slices.Clone(words), at, "--zk", strings.Join(p.Options.ZK, ","), "--root", p.Options.Root)...)
			if r.Code != 1 && r.Code != 2 || strings.Count(r.Err, "\n") != 1 || strings.ContainsAny(r.Err, "\x1b\x00") || r.Out != "" {
				t.Errorf("%.80q: code %d, %.200q, %.200q", words, r.Code, r.Out, r.Err)
			}
		}
		for _, order := range []string{"pause", "resume", "restart", "reload", "switchover"} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+a.Addr+":8437/", strings.NewReader("{}"))
			must.OK(t, err)
			req.URL.Opaque = "//" + a.Addr + ":8437/api/v1/services/" + url.PathEscape(name) + "/" + order
			req.Header.Set("Authorization", "Bearer sesam")
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Errorf("%.80q: %v", name, err)
				continue
			}
			_ = resp.Body.Close()
			if resp.StatusCode < 400 || resp.StatusCode >= 500 {
				t.Errorf("%s of %.80q: %s", order, name, resp.Status)
			}
		}
		if strings.Trim(name, "./") == "" {
			continue // such a path is another page's
		}
		if code := says(t, "http://"+a.Addr+":8437/active/"+url.PathEscape(name)); code == http.StatusOK {
			t.Errorf("%.80q is active", name)
		}
	}
	after := tree(t, p.Conn(), p.Path())
	if !slices.Equal(before, after) {
		t.Errorf("znodes: %q, formerly %q", after, before)
	}
	for line := range strings.Lines(s.Log()) {
		if strings.HasPrefix(strings.TrimSpace(line), "|") || strings.Contains(line, `\x1b`) || len(line) > 2000 {
			t.Errorf("in the log: %.200q", line)
		}
	}
	p.Alone(t, 200*time.Millisecond, "a")
	p.Untouched(t, run)
}
