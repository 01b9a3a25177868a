package watchdog

import (
	"bytes"
	"debug/elf"
	"embed"
	"encoding/binary"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"understudy/supervisor/testbed/kit"
	"understudy/supervisor/testbed/must"
)

// What the machine has on its disk, which is in its memory, beside the programs and the kernel's modules.
//
//go:embed testdata/root
var files embed.FS

// modules are the drivers: the watchdog's in the order in which they are loaded, and the network's.
var modules = []string{"watchdog", "i6300esb", "e1000"}

// kernel is where packaging/test.sh puts the kernel.
func kernel() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "understudy", "kernel")
}

const remedy = "make test-all fetches it"

// vmlinux is the kernel as the emulator can jump into it: to have it unpacked by an emulated processor takes far longer.
var vmlinux = sync.OnceValues(func() (string, error) {
	found, err := filepath.Glob(filepath.Join(kernel(), "boot", "vmlinuz-*"))
	if err != nil || len(found) != 1 {
		return "", fmt.Errorf("no kernel in %s: %s", kernel(), remedy)
	}
	image, err := os.ReadFile(found[0])
	if err != nil {
		return "", err
	}
	// See Documentation/arch/x86/boot.rst: the size of the part before the protected mode, and where in the rest the payload is.
	const sectors, offset, length = 0x1f1, 0x248, 0x24c
	if len(image) < 1024 || string(image[0x202:0x206]) != "HdrS" {
		return "", fmt.Errorf("%s is no kernel for a PC", found[0])
	}
	begin := (int(image[sectors])+1)*512 + int(binary.LittleEndian.Uint32(image[offset:]))
	end := begin + int(binary.LittleEndian.Uint32(image[length:])) - 4 // at its end is the size of what is packed
	if begin < 0 || end > len(image) || begin > end {
		return "", fmt.Errorf("%s is not whole", found[0])
	}
	plain, err := unpack(image[begin:end])
	if err != nil {
		return "", fmt.Errorf("unpack %s: %w", found[0], err)
	}
	name := filepath.Join(program.TempDir(), "vmlinux")
	return name, os.WriteFile(name, plain, 0o644)
})

// unpack undoes what Debian packs kernels and modules with.
func unpack(b []byte) ([]byte, error) {
	for tool, magic := range map[string]string{"xz": "\xfd7zXZ\x00", "zstd": "\x28\xb5\x2f\xfd"} {
		if strings.HasPrefix(string(b), magic) {
			cmd := exec.Command(tool, "-dc")
			cmd.Stdin = bytes.NewReader(b)
			return cmd.Output()
		}
	}
	return b, nil
}

// disk writes the machine's initramfs: an archive in cpio's "newc" format.
func disk(tb testing.TB, to, config string) {
	tb.Helper()
	var b bytes.Buffer
	inode := 0
	entry := func(name string, mode uint32, data []byte) {
		inode++
		fmt.Fprintf(&b, "070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%s\x00",
			inode, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name)+1, 0, name)
		b.Write(make([]byte, -b.Len()&3))
		b.Write(data)
		b.Write(make([]byte, -b.Len()&3))
	}
	const folder, file, link = 0o040755, 0o100755, 0o120777
	for _, name := range []string{"bin", "dev", "etc", "modules", "proc", "run", "sys", "tmp", "freezer"} {
		entry(name, folder, nil)
	}
	busybox, err := exec.LookPath("busybox")
	if err != nil {
		tb.Fatalf("busybox is missing: %s", remedy)
	}
	for name, from := range map[string]string{
		"busybox": busybox, "understudy": kit.UnderstudyBinary(tb), "child": kit.ChildBinary(tb),
	} {
		entry("bin/"+name, file, static(tb, from))
	}
	for _, name := range modules {
		entry("modules/"+name+".ko", file, module(tb, name))
	}
	err = fs.WalkDir(files, "testdata/root/etc", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := files.ReadFile(name)
		entry("etc/"+path.Base(name), file, text)
		return err
	})
	must.OK(tb, err)
	entry("etc/understudy.yaml", file, []byte(config))
	entry("init", link, []byte("bin/busybox"))
	entry("TRAILER!!!", 0, nil)
	must.OK(tb, os.WriteFile(to, b.Bytes(), 0o644))
}

// static reads a program that needs no libraries.
func static(tb testing.TB, name string) []byte {
	tb.Helper()
	text, err := os.ReadFile(name)
	must.OK(tb, err)
	program, err := elf.NewFile(bytes.NewReader(text))
	if err != nil {
		tb.Fatalf("%s: %v", name, err)
	}
	for _, part := range program.Progs {
		if part.Type == elf.PT_INTERP {
			tb.Fatalf("%s is not static (busybox-static is?): %s", name, remedy)
		}
	}
	return text
}

func module(tb testing.TB, name string) []byte {
	tb.Helper()
	var found []string
	_ = filepath.WalkDir(kernel(), func(path string, d fs.DirEntry, err error) error { // what is not found is missed below
		if base := filepath.Base(path); err == nil && (base == name+".ko" || strings.HasPrefix(base, name+".ko.")) {
			found = append(found, path)
		}
		return nil
	})
	if len(found) != 1 {
		tb.Fatalf("the module %s in %s: %q: %s", name, kernel(), found, remedy)
	}
	text, err := os.ReadFile(found[0])
	if err == nil {
		text, err = unpack(text)
	}
	must.OK(tb, err)
	return text
}
