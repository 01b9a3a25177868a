package keyfile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"understudy/supervisor/testbed/must"
)

// A folder is judged where it is opened, in another one as well; and what is done in it is done there, wherever its path leads to by then.
func TestAFolderThatWasOpenedStaysTheOneThatWasJudged(t *testing.T) {
	base := t.TempDir()
	at := func(name string) string { return filepath.Join(base, name) }
	err := errors.Join(os.Mkdir(at("ours"), 0o755), os.Mkdir(at("open"), 0o755), os.Chmod(at("open"), 0o777), os.Symlink("ours", at("link")))
	must.OK(t, err)
	above, err := Folder(base, false)
	must.OK(t, err)
	defer above.Close()
	if folder, err := FolderIn(above, "open"); err == nil || !strings.Contains(err.Error(), "others can write") {
		t.Errorf("%v, %v", folder, err)
	}
	if folder, err := Folder(at("link"), false); err == nil || !strings.Contains(err.Error(), "is not a directory") {
		t.Errorf("%v, %v", folder, err)
	}
	folder, err := Folder(at("ours"), false)
	must.OK(t, err)
	defer folder.Close()
	must.OK(t, errors.Join(os.Rename(at("ours"), at("away")), os.Rename(at("open"), at("ours"))))
	must.OK(t, folder.WriteFile("f", []byte("x"), 0o600))
	if text, err := os.ReadFile(at("away/f")); err != nil || string(text) != "x" {
		t.Errorf("%q, %v", text, err)
	}
}
