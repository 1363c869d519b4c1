package catalog

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Reporter is told how a pull goes. Its methods are called by one goroutine at a time for each pull.
type Reporter interface {
	// Note is a line for people, such as the reason why a source is skipped.
	Note(text string)

	// Progress tells how many bytes of the file are here, of how many; total is 0 when it is not known. done may fall
	// when a source has to begin again.
	Progress(done, total int64)
}

// Config says where the cache is and how sources are reached. Only Dir is required.
type Config struct {
	Dir           string        // cache folder; made when it is needed
	HFEndpoint    string        // base of Hugging Face or a mirror; "" means https://huggingface.co
	HFToken       string        // sent to that endpoint only; "" means none
	Python        string        // interpreter whose pip is used; "" means python3
	AnswerTimeout time.Duration // a source that does not answer for so long is skipped; 0 means 5 s
	StallTimeout  time.Duration // a transfer in which nothing arrives for so long is broken off; 0 means 30 s
	Reporter      Reporter      // nil means nobody is told
}

// ConfigFromEnv fills a Config from the environment that getenv reads: QUIRE_HOME (the cache is its folder models;
// without it, quire/models in the user's cache folder), HF_ENDPOINT and HF_TOKEN.
func ConfigFromEnv(getenv func(string) string) (Config, error) {
	cfg := Config{HFEndpoint: getenv("HF_ENDPOINT"), HFToken: strings.TrimSpace(getenv("HF_TOKEN"))}
	if home := getenv("QUIRE_HOME"); home != "" {
		cfg.Dir = filepath.Join(home, "models")
		return cfg, nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return Config{}, fmt.Errorf("find the cache folder: %w; set QUIRE_HOME", err)
	}
	cfg.Dir = filepath.Join(cache, "quire", "models")
	return cfg, nil
}

// Catalog resolves references to files. It holds no state but its configuration, and may be used by many goroutines
// and processes at once.
type Catalog struct {
	cfg    Config
	models []Model
}

// New returns a Catalog of the models that Quire knows.
func New(cfg Config) *Catalog { return newCatalog(cfg, Models()) }

// newCatalog lets tests bring models of their own.
func newCatalog(cfg Config, models []Model) *Catalog {
	cfg.HFEndpoint = strings.TrimRight(cmp.Or(cfg.HFEndpoint, "https://huggingface.co"), "/")
	cfg.Python = cmp.Or(cfg.Python, "python3")
	cfg.AnswerTimeout = cmp.Or(cfg.AnswerTimeout, 5*time.Second)
	cfg.StallTimeout = cmp.Or(cfg.StallTimeout, 30*time.Second)
	if cfg.Reporter == nil {
		cfg.Reporter = silent{}
	}
	return &Catalog{cfg: cfg, models: models}
}

// silent is the Reporter of those who do not want one.
type silent struct{}

func (silent) Note(string)           {}
func (silent) Progress(int64, int64) {}

// Resolve returns the path of the file that ref means, and pulls it first when it is not here.
func (c *Catalog) Resolve(ctx context.Context, ref string) (string, error) {
	path, err := c.Locate(ref)
	if !errors.Is(err, ErrNotPulled) {
		return path, err
	}
	local, err := c.Pull(ctx, ref)
	if err != nil {
		return "", err
	}
	return local.Path, nil
}

// Locate returns the path of the file that ref means, without fetching anything. A model that could be pulled gives
// ErrNotPulled, a reference that means nothing gives ErrUnknown.
func (c *Catalog) Locate(ref string) (string, error) {
	if m, ok := find(c.models, ref); ok {
		if path := c.file(m.SHA256); c.complete(path, m.Size) {
			return path, nil
		}
		return "", fmt.Errorf("model %q: %w", m.Name, ErrNotPulled)
	}
	if strings.HasPrefix(ref, hfPrefix) {
		if _, err := parseHF(ref); err != nil {
			return "", err
		}
		locals, err := c.locals()
		if err != nil {
			return "", err
		}
		for _, l := range locals {
			if slices.Contains(l.Names, ref) {
				return l.Path, nil
			}
		}
		return "", fmt.Errorf("model %q: %w", ref, ErrNotPulled)
	}
	err := checkFile(ref)
	if errors.Is(err, fs.ErrNotExist) && !looksLikePath(ref) {
		return "", unknown(ref, c.names())
	}
	return ref, err
}

// names returns every name and alias of the catalogue.
func (c *Catalog) names() []string {
	var names []string
	for _, m := range c.models {
		names = append(append(names, m.Name), m.Aliases...)
	}
	return names
}

// Local is a file in the cache folder.
type Local struct {
	Path    string    `json:"path"`
	SHA256  string    `json:"sha256"`
	Size    int64     `json:"size"` // in bytes
	Names   []string  `json:"names"`
	License string    `json:"license,omitempty"`
	Source  string    `json:"source"` // where it was pulled from
	Pulled  time.Time `json:"pulled"`
}

// Entry is a line of the list of models: one that was pulled, or one of the catalogue that may be.
type Entry struct {
	Name    string `json:"name"`
	About   string `json:"about,omitempty"`
	License string `json:"license,omitempty"`
	SHA256  string `json:"sha256"`
	Size    int64  `json:"size"`             // in bytes
	Path    string `json:"path,omitempty"`   // "" when not pulled
	Source  string `json:"source,omitempty"` // where it was pulled from
}

// List returns the models of the catalogue in its order, then what else was pulled, by name.
func (c *Catalog) List() ([]Entry, error) {
	locals, err := c.locals()
	if err != nil {
		return nil, err
	}
	var entries, others []Entry
	for _, m := range c.models {
		e := Entry{Name: m.Name, About: m.About, License: m.License, SHA256: m.SHA256, Size: m.Size}
		for _, l := range locals {
			if l.SHA256 == m.SHA256 {
				e.Path, e.Source = l.Path, l.Source
			}
		}
		entries = append(entries, e)
	}
	for _, l := range locals {
		for _, name := range l.Names {
			if _, ok := find(c.models, name); !ok {
				others = append(others, Entry{Name: name, License: l.License, SHA256: l.SHA256, Size: l.Size, Path: l.Path, Source: l.Source})
			}
		}
	}
	slices.SortFunc(others, func(a, b Entry) int { return cmp.Compare(a.Name, b.Name) })
	return append(entries, others...), nil
}

// file is the path of a whole file in the cache folder.
func (c *Catalog) file(sha256 string) string { return filepath.Join(c.cfg.Dir, sha256+".gguf") }

// complete tells whether there is a file at path, of the size wanted unless that is 0. A file in the cache folder was
// verified before it got its name.
func (c *Catalog) complete(path string, size int64) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && (size == 0 || info.Size() == size)
}

// locals returns the whole files of the cache folder that have a description.
func (c *Catalog) locals() ([]Local, error) {
	descriptions, err := filepath.Glob(filepath.Join(c.cfg.Dir, "*.json"))
	if err != nil {
		return nil, fmt.Errorf("list models: %w", err)
	}
	var locals []Local
	for _, name := range descriptions {
		if strings.HasSuffix(name, ".part.json") {
			continue
		}
		l, err := c.describe(strings.TrimSuffix(filepath.Base(name), ".json"))
		if err != nil {
			return nil, fmt.Errorf("list models: %w", err)
		}
		if c.complete(l.Path, l.Size) {
			locals = append(locals, l)
		}
	}
	return locals, nil
}

// describe reads the description of a file; an absent one gives a Local with path and sha256 only.
func (c *Catalog) describe(sha256 string) (Local, error) {
	l := Local{}
	data, err := os.ReadFile(filepath.Join(c.cfg.Dir, sha256+".json"))
	if err == nil {
		err = json.Unmarshal(data, &l)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Local{}, fmt.Errorf("read the description of %s: %w", sha256, err)
	}
	l.SHA256, l.Path = sha256, c.file(sha256) // the folder may have been moved
	return l, nil
}

// writeDescription replaces the description of a file. The caller holds the lock of its sha256.
func (c *Catalog) writeDescription(l Local) error {
	return writeJSON(filepath.Join(c.cfg.Dir, l.SHA256+".json"), l)
}

// writeJSON writes v to path by rename, so that nobody ever reads half of it.
func writeJSON(path string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	temporary := path + ".new"
	if err := os.WriteFile(temporary, append(data, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}
