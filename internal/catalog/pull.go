package catalog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Pull brings the file that ref means into the cache folder and returns it. When it is there already, Pull verifies
// it again. A path means nothing to pull and is refused.
//
// An interrupted pull (the context ends, the network breaks, the disk is full) keeps what has arrived, and the next
// one goes on from there.
func (c *Catalog) Pull(ctx context.Context, ref string) (*Local, error) {
	m, err := c.model(ctx, ref)
	if err != nil {
		return nil, fmt.Errorf("pull: %w", err)
	}
	l, err := c.pullModel(ctx, m)
	if err != nil {
		return nil, fmt.Errorf("pull %s: %w", m.Name, err)
	}
	return l, nil
}

// model returns what ref names. For a hf: reference it asks for size and sha256.
func (c *Catalog) model(ctx context.Context, ref string) (*Model, error) {
	if m, ok := find(c.models, ref); ok {
		return &m, nil // a copy, which belongs to this pull
	}
	if !strings.HasPrefix(ref, hfPrefix) {
		if checkFile(ref) == nil {
			return nil, fmt.Errorf("%s is a file already; it can be used as it is", ref)
		}
		return nil, unknown(ref, c.names())
	}
	source, err := parseHF(ref)
	if err != nil {
		return nil, err
	}
	m := &Model{Name: ref, Sources: []Source{source}}
	m.SHA256, m.Size, err = source.announced(ctx, &c.cfg)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", ref, err)
	}
	return m, nil
}

// pullModel takes the lock, and fetches the file unless it is there.
func (c *Catalog) pullModel(ctx context.Context, m *Model) (*Local, error) {
	if err := os.MkdirAll(c.cfg.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("make the cache folder: %w", err)
	}
	key := m.key()
	unlock, err := lock(ctx, filepath.Join(c.cfg.Dir, key+".lock"), func() {
		c.cfg.Reporter.Note("waiting for another process that pulls the same file")
	})
	if err != nil {
		return nil, err
	}
	defer unlock()
	if m.SHA256 != "" && c.complete(c.file(m.SHA256), m.Size) {
		return c.verified(m)
	}
	return c.fromSources(ctx, m)
}

// key names the files that belong to a pull: the sha256 of the model or, where nobody announced one, its source.
func (m *Model) key() string {
	if m.SHA256 != "" {
		return m.SHA256
	}
	return "unverified-" + hashOf(m.Name)
}

// verified checks the sha256 of a file that is here, and notes the name under which it was asked for.
func (c *Catalog) verified(m *Model) (*Local, error) {
	path := c.file(m.SHA256)
	sum, err := hashFile(path)
	if err != nil {
		return nil, err
	}
	if sum != m.SHA256 {
		return nil, fmt.Errorf("%s is damaged: its sha256 is %s; remove it and pull again", path, sum)
	}
	return c.record(m, "")
}

// record writes the description of a file that is in its place.
func (c *Catalog) record(m *Model, source string) (*Local, error) {
	l, err := c.describe(m.SHA256)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(l.Path)
	if err != nil {
		return nil, err
	}
	l.Size = info.Size()
	if !slices.Contains(l.Names, m.Name) {
		l.Names = append(l.Names, m.Name)
	}
	if m.License != "" {
		l.License = m.License
	}
	if source != "" {
		l.Source, l.Pulled = source, time.Now().UTC().Truncate(time.Second)
	}
	return &l, c.writeDescription(l)
}

// fromSources tries the sources in turn until one gives the right file.
func (c *Catalog) fromSources(ctx context.Context, m *Model) (*Local, error) {
	key := m.key()
	var failures []error
	for _, source := range m.Sources {
		c.cfg.Reporter.Note(fmt.Sprintf("fetching from %s", source))
		sum, err := c.fromSource(ctx, m, source)
		if err == nil {
			m.SHA256 = sum
			c.removeParts(m.Sources, key)
			return c.record(m, source.String())
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("%w; what has arrived is kept, the same command goes on from there", context.Cause(ctx))
		}
		if _, ok := errors.AsType[*localError](err); ok {
			return nil, err
		}
		failures = append(failures, fmt.Errorf("%s: %w", source, err))
		c.cfg.Reporter.Note(fmt.Sprintf("skipping %s: %v", source, err))
	}
	return nil, fmt.Errorf("no source worked:\n%w", errors.Join(failures...))
}

// fromSource fetches from one source, verifies, and moves the file to its place. It returns the file's sha256. A part
// of an earlier pull that leads to a wrong file is dropped, and the file fetched whole.
func (c *Catalog) fromSource(ctx context.Context, m *Model, source Source) (string, error) {
	p, err := openPart(c.partPath(m.key(), source))
	if err != nil {
		return "", err
	}
	defer p.close()
	resumed := p.size > 0
	if resumed {
		c.cfg.Reporter.Note(fmt.Sprintf("going on after %d bytes of an earlier pull", p.size))
	}
	if err := checkSpace(c.cfg.Dir, m.Size-p.size); err != nil {
		return "", err
	}
	t := &transfer{ctx: ctx, cfg: &c.cfg, model: m, part: p}
	err = t.fetchChecked(source)
	if errors.Is(err, errWrongFile) {
		err = errors.Join(err, p.reset())
		if resumed {
			c.cfg.Reporter.Note(fmt.Sprintf("beginning again: %v", err))
			err = t.fetchChecked(source)
		}
	}
	if err != nil {
		return "", err
	}
	sum := p.sum()
	return sum, p.moveTo(c.file(sum))
}

// partPath is where a source keeps what has arrived.
func (c *Catalog) partPath(key string, source Source) string {
	return filepath.Join(c.cfg.Dir, key+"."+source.kind()+".part")
}

// removeParts removes what the sources left behind.
func (c *Catalog) removeParts(sources []Source, key string) {
	for _, source := range sources {
		part := c.partPath(key, source)
		os.Remove(part)
		os.Remove(part + ".json")
	}
}

// errWrongFile is the cause when a source gives other bytes than the catalogue wants.
var errWrongFile = errors.New("wrong file")

// transfer is one attempt to fetch a model from one source.
type transfer struct {
	ctx   context.Context
	cfg   *Config
	model *Model
	part  *part
}

// progress reports how much is here.
func (t *transfer) progress() { t.cfg.Reporter.Progress(t.part.size, t.model.Size) }

// fetchChecked lets the source fetch, and compares size and sha256 with the model's.
func (t *transfer) fetchChecked(source Source) error {
	if err := source.fetch(t); err != nil {
		return err
	}
	switch size, sum := t.part.size, t.part.sum(); {
	case t.model.Size > 0 && size != t.model.Size:
		return fmt.Errorf("%w: %d bytes, want %d", errWrongFile, size, t.model.Size)
	case t.model.SHA256 == "":
		t.cfg.Reporter.Note("the source announced no sha256, so the file could not be verified")
	case sum != t.model.SHA256:
		return fmt.Errorf("%w: sha256 is %s, want %s", errWrongFile, sum, t.model.SHA256)
	}
	return nil
}
