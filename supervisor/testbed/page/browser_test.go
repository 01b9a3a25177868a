package page

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"understudy/packaging/need"
	"understudy/supervisor/testbed/kit"
)

// browser is a page in a real browser.
type browser struct {
	testing.TB
	ctx context.Context

	mu       sync.Mutex // guards problems
	problems []string   // what the console shows as an error
}

// browse starts a browser.
func browse(t testing.TB) *browser {
	t.Helper()
	need.These(t, "chromium")
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatalf("%v: make test-all installs it", err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox)
	ctx, cancel := chromedp.NewExecAllocator(context.WithoutCancel(t.Context()), options...) // it is closed in order, by tab
	t.Cleanup(cancel)
	return tab(ctx, t)
}

// tab opens another one of the same browser.
func (b *browser) tab() *browser {
	b.Helper()
	return tab(b.ctx, b.TB)
}

func tab(parent context.Context, t testing.TB) *browser {
	t.Helper()
	ctx, cancel := chromedp.NewContext(parent)
	b := &browser{TB: t, ctx: ctx}
	t.Cleanup(func() {
		defer cancel()
		closing, done := context.WithTimeout(ctx, soon)
		defer done()
		if err := chromedp.Cancel(closing); err != nil {
			t.Logf("close the browser: %v", err)
		}
	})
	if err := chromedp.Listen(ctx, b.hear); err != nil { // it starts the browser
		t.Fatalf("start the browser: %v", err)
	}
	b.resize(1100, 900, false)
	return b
}

// open shows an address.
func (b *browser) open(url string) {
	b.Helper()
	b.do(chromedp.Navigate(url))
}

func (b *browser) hear(event any) {
	text := ""
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		text = e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			text += " " + e.ExceptionDetails.Exception.Description
		}
	case *runtime.EventConsoleAPICalled:
		if e.Type == "error" || e.Type == "warning" {
			text = fmt.Sprint(e.Type, " ", len(e.Args), " arguments")
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == "error" || e.Entry.Level == "warning" {
			text = e.Entry.Text + " " + e.Entry.URL
		}
	}
	if strings.Contains(text, "ERR_NETWORK_CHANGED") {
		return // other tests make hosts meanwhile
	}
	if text != "" {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.problems = append(b.problems, text)
	}
}

// silent fails the test when the page found anything wrong. It comes before the supervisors end, which a page does notice.
func (b *browser) silent() {
	for _, p := range b.heard() {
		b.Errorf("the browser's console: %s", p)
	}
}

// heard is what was found wrong since it was asked last.
func (b *browser) heard() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := b.problems
	b.problems = nil
	return all
}

func (b *browser) do(steps ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 2*soon)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		b.Fatalf("in the browser: %v", err)
	}
}

// js is what a script in the page comes to.
func js[T any](b *browser, script string, args ...any) T {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 2*soon)
	defer cancel()
	got, err := chromedp.Run(ctx, chromedp.Evaluate[T](fmt.Sprintf(script, args...), chromedp.EvalAwaitPromise))
	if err != nil {
		b.Fatalf("in the browser: %s: %v", script, err)
	}
	return got
}

// text is what an element shows; empty when there is none that can be seen.
func (b *browser) text(selector string) string {
	b.Helper()
	return js[string](b, "document.querySelector(%q)?.checkVisibility() ? document.querySelector(%q).innerText : ''", selector, selector)
}

// count is how many elements there are.
func (b *browser) count(selector string) int {
	b.Helper()
	return js[int](b, "document.querySelectorAll(%q).length", selector)
}

// until waits for words in an element.
func (b *browser) until(selector string, words ...string) time.Duration {
	b.Helper()
	return kit.Until(b, soon, fmt.Sprintf("%s says %q", selector, words), func() bool {
		text := b.text(selector)
		for _, w := range words {
			if !strings.Contains(text, w) {
				return false
			}
		}
		return true
	})
}

// press presses a button, as a person does who sees it; where the page asks whether that is meant, it is. Where the button is and the press
// are one step: the page moves.
func (b *browser) press(selector string) {
	b.Helper()
	b.click(selector)
	if b.count("#ask[open]") > 0 {
		b.click("#yes")
	}
}

// click presses a button, and no other.
func (b *browser) click(selector string) {
	b.Helper()
	kit.Until(b, soon, selector+" can be pressed", func() bool {
		return js[bool](b, `(() => {
			const button = document.querySelector(%q);
			if (!button || button.disabled) return false;
			button.scrollIntoView({block: 'nearest'});
			const at = button.getBoundingClientRect();
			if (document.elementFromPoint(at.x + at.width / 2, at.y + at.height / 2) !== button) return false;
			button.click();
			return true;
		})()`, selector)
	})
}

// enter presses the key Enter, on what has the focus.
func (b *browser) enter() {
	b.Helper()
	b.do(chromedp.KeyEvent(kb.Enter))
}

// types has a field contain a text.
func (b *browser) types(selector, text string) {
	b.Helper()
	js[struct{}](b, "(() => { const field = document.querySelector(%q); field.value = %q; field.dispatchEvent(new Event('input')); return {}; })()", selector, text)
}

// token gives the page a token, as a person does.
func (b *browser) token(secret string) {
	b.Helper()
	b.do(chromedp.WaitVisible(chromedp.ID("token")), chromedp.SendKeys(chromedp.ID("token"), secret), chromedp.Click(chromedp.ID("use")))
}

// wider tells by how many pixels the page is wider than the window.
func (b *browser) wider() int {
	b.Helper()
	return js[int](b, "Math.max(document.documentElement.scrollWidth, document.body.scrollWidth) - document.documentElement.clientWidth")
}

// resize makes the window a phone's, or a larger one.
func (b *browser) resize(width, height int64, phone bool) {
	b.Helper()
	size := emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height, DeviceScaleFactor: 1, Mobile: phone}
	if _, err := chromedp.Call(b.ctx, emulation.SetDeviceMetricsOverride, size); err != nil {
		b.Fatalf("in the browser: %v", err)
	}
}

// shot keeps a picture of the window as NAME.png in the folder that UNDERSTUDY_PICTURES names; without it, none.
func (b *browser) shot(name string) {
	b.Helper()
	dir := os.Getenv("UNDERSTUDY_PICTURES")
	if dir == "" {
		return
	}
	ctx, cancel := context.WithTimeout(b.ctx, 2*soon)
	defer cancel()
	png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644)
	}
	if err != nil {
		b.Fatalf("in the browser: %v", err)
	}
}

// dark has the browser prefer dark colours, or light ones.
func (b *browser) dark(wanted bool) {
	b.Helper()
	scheme := map[bool]string{true: "dark", false: "light"}[wanted]
	media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}
	if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, media); err != nil {
		b.Fatalf("in the browser: %v", err)
	}
}
