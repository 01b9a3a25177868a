package main

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"understudy/packaging/need"
	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/must"
)

// The example of a store refuses every write of an activation that another one has followed, also after it was killed.
func TestTheExampleOfAStoreRefusesOldTokens(t *testing.T) {
	need.These(t, "python3")
	addr := ""
	for addr == "" { // no port that the kernel gives to a connection of others meanwhile
		if l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", 20000+rand.IntN(10000))); err == nil {
			addr = l.Addr().String()
			must.OK(t, l.Close())
		}
	}
	_, port, _ := net.SplitHostPort(addr)
	kept := filepath.Join(t.TempDir(), "kept.db")
	start := func() *exec.Cmd {
		cmd := exec.Command("python3", "../../examples/token-store.py", port, kept)
		must.OK(t, cmd.Start())
		return cmd
	}
	put := func(name, token string) (code int) {
		kit.Until(t, time.Minute, "the store answers", func() bool {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://"+addr+"/"+name, strings.NewReader("value"))
			must.OK(t, err)
			req.Header.Set("Token", token)
			answer, err := http.DefaultClient.Do(req)
			if err != nil {
				return false
			}
			code = answer.StatusCode
			return answer.Body.Close() == nil
		})
		return code
	}
	cmd := start()
	defer func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
	}()
	for i, write := range []struct {
		name, token string
		code        int
	}{
		{"a", "5", 204}, {"a", "4", 409}, {"b", "4", 409}, {"a", "5", 204}, {"b", "6", 204}, {"a", "5", 409}, // b's write counts for a
		{"a", "5", 409}, {"a", "6", 204}, {"a", "", 409}, // started again
	} {
		if i == 6 {
			_ = cmd.Process.Kill()
			_ = cmd.Wait() // it was killed
			cmd = start()
		}
		if code := put(write.name, write.token); code != write.code {
			t.Errorf("write %d, of %s with token %s: %d, not %d", i, write.name, write.token, code, write.code)
		}
	}
}
