package keyfile

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"understudy/supervisor/testbed/must"
)

// However many ask, one reads, once a second; and what cannot be read takes nothing away.
func TestWhatIsKeptIsReadNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reads atomic.Int64
		value, fault := "a", error(nil)
		hang := make(chan struct{})
		close(hang)
		var told []string
		get := Cached(func() (string, error) { reads.Add(1); <-hang; return value, fault }, func(err error) { told = append(told, err.Error()) })
		want := func(v string, n int64, wait time.Duration) {
			t.Helper()
			began := time.Now()
			if got, err := get(); got != v || err != nil || reads.Load() != n || time.Since(began) != wait {
				t.Errorf("%q (%v) after %d reads and %v", got, err, reads.Load(), time.Since(began))
			}
		}
		want("a", 1, 0)
		value = "b"
		want("a", 1, 0)
		time.Sleep(freshFor)
		want("b", 2, 0)
		for i := range 3 {
			value, fault = "", errors.New("gone")
			time.Sleep(freshFor)
			want("b", int64(3+i), 0)
		}
		synctest.Wait()
		if !slices.Equal(told, []string{"gone"}) {
			t.Errorf("told: %q", told)
		}
		value, fault, hang = "c", nil, make(chan struct{})
		time.Sleep(freshFor)
		for range 3 { // each waits for the one that reads, not for ever
			want("b", 6, patience)
		}
		close(hang)
		synctest.Wait()
		want("c", 6, 0)
	})
}

// What was never read is an error, until it can be read.
func TestWhatWasNeverReadIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var fault error
		hang := make(chan struct{})
		get := Cached(func() (int, error) { <-hang; return 1, fault }, nil)
		if _, err := get(); !errors.Is(err, errNoAnswer) {
			t.Error(err)
		}
		fault = errors.New("gone")
		close(hang)
		synctest.Wait()
		if _, err := get(); !errors.Is(err, fault) {
			t.Error(err)
		}
		fault = nil
		time.Sleep(freshFor)
		if v, err := get(); v != 1 || err != nil {
			t.Error(v, err)
		}
		told := CachedFrom(7, func() (int, error) { return 0, errors.New("gone") })
		if v, err := told(); v != 7 || err != nil {
			t.Error(v, err)
		}
	})
}

func TestSecretsStandOnLines(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f")
	for text, want := range map[string]string{
		"a\nb\n": "a|b", "a": "a", "a\r\n\n b \n": "a| b ", "\n\n": "!is empty", "": "!is empty", "a\x00b": "!is not text",
		strings.Repeat("a\n", largest): "!is larger than",
	} {
		must.OK(t, os.WriteFile(file, []byte(text), 0o600))
		all, err := Lines(file)
		problem, bad := strings.CutPrefix(want, "!")
		if bad && (err == nil || !strings.Contains(err.Error(), problem)) || !bad && (err != nil || strings.Join(all, "|") != want) {
			t.Errorf("%.20q: %q %v", text, all, err)
		}
	}
	if _, err := Line(file + "2"); err == nil {
		t.Error("there is no such file")
	}
	if _, err := Line(filepath.Dir(file)); err == nil || !strings.Contains(err.Error(), "is not a regular file") {
		t.Error(err)
	}
	must.OK(t, os.WriteFile(file, []byte("a\nb\n"), 0o600))
	if _, err := Line(file); !errors.Is(err, ErrLines) {
		t.Error(err)
	}
}
