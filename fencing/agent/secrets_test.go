package agent

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"understudy/supervisor/testbed/must"
)

// secretFile holds secrets, each on a line.
func secretFile(t *testing.T, secrets ...[]byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "secret")
	writeSecrets(t, file, secrets...)
	return file
}

func writeSecrets(t *testing.T, file string, secrets ...[]byte) {
	t.Helper()
	must.OK(t, os.WriteFile(file, append(bytes.Join(secrets, []byte("\n")), '\n'), 0o600))
}

func askOnce(t *testing.T, m Method) error {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	return m.Fence(ctx, target)
}

// While nodes change their secret one after the other, whichever of the steps each has made, they believe one another.
func TestSecretIsChangedWithoutAGap(t *testing.T) {
	was, is := []byte("the secret as it was before"), []byte("the secret that is to be")
	steps := [][][]byte{{was}, {was, is}, {is, was}, {is}}
	for i := range steps {
		for j := range steps {
			synctest.Test(t, func(t *testing.T) {
				d := newDesk(t, nil)
				d.Keys = KeysIn(secretFile(t, steps[i]...), nil)
				m := Method{Keys: KeysIn(secretFile(t, steps[j]...), nil), Dial: d.dial}
				near := i-j >= -1 && i-j <= 1
				if err := askOnce(t, m); (err == nil) != near && (near || i+j == 3) {
					t.Errorf("asked at step %d, asker at step %d: %v", i, j, err)
				}
				d.wg.Wait()
			})
		}
	}
}

// What is in the file counts, a moment after it is; what makes no sense there does not.
func TestChangedSecretIsTakenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := secretFile(t, []byte("the secret as it was before"))
		var told []string
		d := newDesk(t, nil)
		d.Keys = KeysIn(file, func(err error) { told = append(told, err.Error()) })
		ask := func() error { d := d.method(); return askOnce(t, d) }
		if ask() == nil {
			t.Error("the secret is another")
		}
		writeSecrets(t, file, secret)
		time.Sleep(2 * time.Second)
		must.Report(t, ask())
		writeSecrets(t, file, []byte("short"))
		time.Sleep(2 * time.Second)
		must.Report(t, ask())
		synctest.Wait()
		if len(told) != 1 || !strings.Contains(told[0], "less than 16") || strings.Contains(told[0], "short") {
			t.Errorf("told: %q", told)
		}
		d.wg.Wait()
	})
}
