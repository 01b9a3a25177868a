package page

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/kit/tick"
)

const secret = "open sesame"

// paged starts supervisors that serve the page, one on each host, and waits until the first is active and the others stand by.
func (p *play) paged(t *testing.T, hosts ...*kit.Host) []*kit.Supervisor {
	t.Helper()
	p.Options.Session = 10 * time.Second // a browser needs the machine at times
	file := filepath.Join(t.TempDir(), "token")
	must(t, os.WriteFile(file, []byte(secret+"\n"), 0o600))
	var all []*kit.Supervisor
	for i, h := range hosts {
		all = append(all, p.FromFile(t, h, p.Config(t, h, fmt.Sprintf("http: {listen: \":8437\", token_file: %s}\n", file), kit.Command(p.Child()))))
		if i == 0 {
			p.On(t, soon, h.Name, 0)
			p.Role(t, h.Name, "active")
		} else {
			p.Stands(t, h)
		}
	}
	return all
}

func address(h *kit.Host, path string) string { return "http://" + h.Addr + ":8437" + path }

// Whoever watches sees that another node is active, wherever the page comes from.
func TestThePageShowsAFailover(t *testing.T) {
	p := newPlay(t, stage(t))
	a, b, c := p.Lab.Host(t, "a"), p.Lab.Host(t, "b"), p.Lab.Host(t, "c")
	page := browse(t) // which keeps the machine busy while it starts
	pages := []*browser{page, page.tab(), page.tab()}
	all := p.paged(t, a, b, c)
	d, service := p.Lab.Host(t, "d"), p.Options.Service // which has nothing to do with it
	p.Options.Service = "z-other"
	p.FromFile(t, d, p.Config(t, d, "http: {listen: \":8437\"}\n", kit.Command(kit.NewAccounts(t, p.Lab).Child())))
	p.Role(t, "d", "active")
	p.Options.Service = service
	for i, h := range []*kit.Host{b, c, d} {
		page := pages[i]
		defer page.silent()
		page.open(address(h, "/"))
		page.until(".word", "active on a")
		page.until("#live", "live")
		page.until("#sum", "2 services, 4 supervisors")
	}
	all[0].Kill9()
	next := p.Next(t, soon, p.Runs()[0].First)
	for _, page := range slices.Backward(pages) {
		page.until(".word", "active on "+next.Node)
		t.Logf("shown %v after the child's start", time.Duration(tick.Now()-next.First))
	}
	for _, page := range pages {
		page.until("article details summary", "1 takeover, 0 switchovers")
		js[struct{}](page, "document.querySelector('details').open = true")
		page.until("article details ol", "takeover a → "+next.Node+": supervisor lost")
		page.until("#log", next.Node)
		if n := page.count("article path.fail"); n != 1 {
			t.Errorf("the picture has %d marks of a failover", n)
		}
	}
	p.counts(t, map[string]*kit.Host{"b": b, "c": c}[next.Node], `failovers_total{reason="supervisor lost",service=%q} 1`, `gap_seconds_count{service=%q} 1`)
}

// Where looking takes a token, a browser shows it as a password; the page lives on with it, and gives orders with the other token.
func TestThePageTakesAPassword(t *testing.T) {
	p := newPlay(t, stage(t))
	a := p.Lab.Host(t, "a")
	dir := t.TempDir()
	token, look := filepath.Join(dir, "token"), filepath.Join(dir, "look")
	must(t, os.WriteFile(token, []byte(secret+"\n"), 0o600))
	must(t, os.WriteFile(look, []byte("onlookers-of-this\n"), 0o600))
	p.FromFile(t, a, p.Config(t, a, fmt.Sprintf("http: {listen: \":8437\", token_file: %s, read_token_file: %s}\n", token, look), kit.Command(p.Child())))
	p.On(t, soon, a.Name, 0)
	if code, _ := get(t, address(a, "/api/v1/status")); code != 401 {
		t.Errorf("without a token: %d", code)
	}
	page := browse(t)
	defer page.silent()
	page.open(strings.Replace(address(a, "/"), "http://", "http://me:onlookers-of-this@", 1))
	page.until(".word", "active on a")
	page.until("#live", "live")
	page.token(secret)
	page.press(".pause")
	page.until(".word", "active on a, paused")
}

// counts waits until a host's metrics have lines about the service.
func (p *play) counts(t *testing.T, h *kit.Host, lines ...string) {
	t.Helper()
	for _, line := range lines {
		want := "\nunderstudy_" + fmt.Sprintf(line, p.Options.Service) + "\n"
		kit.Until(t, soon, "the metrics of "+h.Name+" say"+want, func() bool {
			_, text := get(t, address(h, "/metrics"))
			return strings.Contains(text, want)
		})
	}
}

// The buttons of the page do what they say, and say what became of it.
func TestThePageGivesOrders(t *testing.T) {
	p := newPlay(t, stage(t))
	a, b, c := p.Lab.Host(t, "a"), p.Lab.Host(t, "b"), p.Lab.Host(t, "c")
	page := browse(t)
	defer page.silent()
	all := p.paged(t, a, b, c)
	page.open(address(c, "/"))
	page.until(".word", "active on a")
	if got := page.text(".orders"); got != "" {
		t.Errorf("without a token there is %q", got)
	}
	page.token("open barley")
	page.until("#keysaid", "That is not the token.")
	if got := page.text(".orders"); got != "" {
		t.Errorf("with a wrong token there is %q", got)
	}
	if got := page.heard(); len(got) != 1 || !strings.Contains(got[0], "401") {
		t.Errorf("the console: %v", got) // the browser's own word on the answer
	}
	page.token(secret)
	page.until(".orders", "Switch over")

	js[struct{}](page, "document.querySelector('.target').value = 'c'")
	at := tick.Now()
	page.press(".switchover")
	page.until(".said", "Done: active on c")
	run := p.On(t, soon, "c", at)
	page.until(".word", "active on c")
	page.until("article details summary", "0 takeovers, 1 switchover")
	if n, fails := page.count("article circle.hand"), page.count("article path.fail"); n != 1 || fails != 0 {
		t.Errorf("the picture has %d marks of a hand-over, and %d of a failover", n, fails)
	}
	p.Role(t, "a", "standby")
	p.counts(t, c, `handovers_total{reason="switchover",service=%q} 1`, `failovers_total{reason="unknown",service=%q} 0`, `gap_seconds_count{service=%q} 1`)

	page.shot("few-light-1100")
	page.press(".restart")
	page.until(".said", "Done after")
	kit.Until(t, soon, "the child is another", func() bool {
		now := p.Running()
		return len(now) == 1 && now[0].Node == "c" && now[0].Pid != run.Pid
	})

	page.press(".pause")
	page.until(".word", "active on c, paused")
	page.until(".faults", "from the page", "understudy resume")
	page.do(chromedp.Click(chromedp.CSS(".copy"))) // this page comes without TLS: it has no clipboard of its own
	page.until(".copy", "✓ copied")
	p.Role(t, "a", "paused")
	page.press(".switchover") // what makes no sense is refused, in the same words as by the command
	page.until(".said", "understudy resume")
	if got := page.heard(); len(got) != 1 || !strings.Contains(got[0], "409") {
		t.Errorf("the console: %v", got)
	}
	page.press(".resume")
	p.Role(t, "a", "standby")
	page.until(".word", "● active on c")
	for _, words := range [][]string{
		{"ordered over http", "order=switchover", "to=c"}, {"the order is in progress", "is asked to give"}, {"the order is done", "order=switchover"},
		{"the order is not done", "order=switchover", "paused"},
	} {
		if !all[2].Says(words...) {
			t.Errorf("the log does not say %q", words)
		}
	}
	page.do(chromedp.Reload())
	page.until(".orders", "Switch over") // the token is known to the tab
	page.press("#forget")
	kit.Until(t, soon, "the buttons are gone", func() bool { return page.text(".orders") == "" })
}

// On a phone nothing has to be pushed aside to be read, whatever names and reasons are about.
func TestThePageFitsAPhone(t *testing.T) {
	p := newPlay(t, stage(t))
	long := strings.Repeat("long", 12)
	p.Options.Service = "a-service-that-has-" + long
	a, b := p.Lab.Host(t, "a-node-that-has-"+long), p.Lab.Host(t, "b")
	page := browse(t)
	defer page.silent()
	page.resize(390, 844, true)
	p.paged(t, a, b)
	page.open(address(b, "/"))
	page.token(secret)
	page.until(".orders", "Switch over")
	page.press(".switchover")
	page.until(".said", "Done: active on b")
	p.pause(t, p.Lab.Host(t, "op"), strings.Repeat("reasonable", 30))
	page.until(".faults", "reasonable")
	js[struct{}](page, "document.querySelector('details').open = true")
	page.until("article details ol", "switchover")
	for _, width := range []int64{390, 320, 768} {
		page.resize(width, 844, true)
		kit.Until(t, soon, fmt.Sprintf("nothing is wider than %d pixels", width), func() bool { return page.wider() <= 0 })
		page.shot(fmt.Sprintf("few-light-%d", width))
	}
}
