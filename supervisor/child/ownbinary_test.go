package child

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"understudy/supervisor/wait"

	"understudy/packaging/need"
	"understudy/supervisor/child/box"
	"understudy/supervisor/child/inside"
)

const imageWord = "child-test-image"

// image is the file that this process runs.
func image() string {
	info, err := os.Stat(inside.OwnBinary)
	if err != nil {
		return err.Error()
	}
	at := info.Sys().(*syscall.Stat_t)
	return fmt.Sprintln(at.Dev, at.Ino, inside.HasOwnMounts())
}

// A command of ours is this process's own image, in each container and for each user, whether that may come to the binary's folder or not.
func TestOurCommandsRunThisImage(t *testing.T) {
	kinds(t, func(t *testing.T, kind string) {
		tree := planted(t, guarded(t, kind))
		for name, c := range map[string]*inside.Credential{"as this user": nil, "as nobody": asNobody()} {
			t.Run(name, func(t *testing.T) {
				if c != nil {
					need.These(t, "root")
				}
				spec := Spec{Argv: []string{inside.OwnBinary, imageWord}, Env: os.Environ(), Settings: inside.Settings{Credential: c}}
				got, err := Output(t.Context(), new(wait.Reach), tree.Start, spec)
				want := "understudy: " + image() // and knows whether its mounts are the host's
				if kind == box.KindPidNS {
					want = strings.Replace(want, "false", "true", 1)
				}
				if err != nil || string(got.Output) != want {
					t.Errorf("%q, %v, wanted %q", got.Output, err, want)
				}
			})
		}
	})
}
