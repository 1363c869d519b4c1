package llm

import (
	"errors"
	"log/slog"
	"path/filepath"

	"github.com/quire-ai/quire/gguf"
	"github.com/quire-ai/quire/internal/connector"
	"github.com/quire-ai/quire/internal/connector/chunk"
	"github.com/quire-ai/quire/internal/connector/disk"
	"github.com/quire-ai/quire/internal/connector/ram"
	"github.com/quire-ai/quire/internal/connector/valkey"
	"github.com/quire-ai/quire/internal/executor"
)

// Tiers says where KV goes that leaves the pool, and comes back from. The zero value is memory only.
type Tiers struct {
	// RAM is the memory for blocks that the pool gave to others, in bytes, taken as it is needed. 0 takes an eighth of the
	// memory that is free once the weights are loaded, but no more than 8 GiB; negative takes none.
	RAM int64

	// Disk is a folder in which KV outlives the process; empty is none. Each model has a folder of its own in it, which one
	// process uses at a time.
	Disk string
	// DiskBytes is the most space for this model's KV; 0 takes a tenth of what is free, but no more than 10 GiB. The folders
	// of other models are removed, used longest ago first, when together they take more than this.
	DiskBytes int64
	// DiskOptional has Load go on, with a warning, when the folder cannot be used.
	DiskOptional bool

	// Valkey is the URL of a Valkey or Redis server that replicas share; empty is none. See package valkey.
	Valkey string
}

// sharedTokens is about the size of a chunk in a shared store: values of a few hundred kilobytes to a few megabytes are what
// such servers move fastest.
const sharedTokens = 64

// Bounds of tiers whose size nobody chose.
const (
	ramShare  = 8        // an eighth of the free memory
	ramLimit  = 8 << 30  // bytes
	diskShare = 10       // a tenth of the free space
	diskLimit = 10 << 30 // bytes
)

// openTiers makes the chain of tiers behind the executor's KV memory, nil if there is none.
func openTiers(o Options, ex *executor.Executor, f *gguf.File) (*connector.Chain, error) {
	s := &o.Engine.Sched
	if s.NoPrefixCaching {
		return nil, nil
	}
	cfg := connector.Config{
		Memory: ex.KV(), Format: chunk.Format{Blocks: 1, BlockBytes: ex.KV().BlockBytes()}, BlockSize: s.BlockSize, Groups: s.Groups,
		Events: o.Engine.Observer.KVEvents != nil, Log: o.Log,
	}
	var err error
	if o.Tiers.Disk != "" || o.Tiers.Valkey != "" {
		if cfg.Format.Fingerprint, err = fingerprint(f, ex.KV().Shape(), s.Groups); err != nil {
			return nil, err
		}
	}
	if o.Tiers.Disk != "" {
		store, err := openDisk(o.Tiers, cfg.Format)
		switch {
		case err == nil:
			cfg.Stores = append(cfg.Stores, store)
		case o.Tiers.DiskOptional:
			o.Log.Warn("KV is not kept on disk", slog.Any("error", err))
		default:
			return nil, err
		}
	}
	if o.Tiers.Valkey != "" {
		format := cfg.Format.Of(max(sharedTokens/s.BlockSize, 1))
		store, err := valkey.New(valkey.Config{URL: o.Tiers.Valkey, Format: format})
		if err != nil {
			return nil, errors.Join(err, closeAll(cfg.Stores))
		}
		cfg.Stores = append(cfg.Stores, store)
	}
	if cfg.RAM, err = openRAM(o.Tiers, cfg.Format.BlockBytes); err != nil {
		return nil, errors.Join(err, closeAll(cfg.Stores))
	}
	if cfg.RAM == nil && len(cfg.Stores) == 0 {
		return nil, nil
	}
	return connector.New(cfg)
}

func closeAll(stores []connector.Store) error {
	var err error
	for _, s := range stores {
		err = errors.Join(err, s.Close())
	}
	return err
}

// openRAM makes the ram tier, nil if there is none.
func openRAM(t Tiers, blockBytes int) (*ram.Cache, error) {
	bytes := t.RAM
	if bytes == 0 {
		free, err := FreeMemory()
		if err != nil {
			return nil, nil // nobody asked for it
		}
		bytes = min(free/ramShare, ramLimit)
	}
	if t.RAM <= 0 && bytes < int64(blockBytes) {
		return nil, nil
	}
	return ram.New(bytes, blockBytes)
}

// openDisk opens the model's folder.
func openDisk(t Tiers, format chunk.Format) (*disk.Store, error) {
	dir := filepath.Join(t.Disk, disk.Folder(format.Fingerprint))
	bytes := t.DiskBytes
	if bytes == 0 {
		free, err := disk.FreeBytes(existing(t.Disk))
		if err != nil {
			return nil, err
		}
		bytes = min((free+disk.Bytes(dir))/diskShare, diskLimit)
	}
	if err := disk.Prune(t.Disk, filepath.Base(dir), bytes); err != nil {
		return nil, err
	}
	return disk.Open(disk.Config{Dir: dir, SizeBytes: bytes, Format: format})
}

// existing returns the path, or the nearest folder above that is there.
func existing(path string) string {
	for {
		if _, err := disk.FreeBytes(path); err == nil || path == filepath.Dir(path) {
			return path
		}
		path = filepath.Dir(path)
	}
}

// withTiers gives the engine its connector. The chain is the engine's from then on.
func (m *Model) withTiers(o *Options, ex *executor.Executor, f *gguf.File) error {
	chain, err := openTiers(*o, ex, f)
	if err != nil {
		return errors.Join(err, ex.Close())
	}
	if chain == nil {
		return nil
	}
	m.Tiers, o.Engine.Connector = chain, chain
	for _, t := range chain.Stats() {
		o.Log.Info("KV cache continues", slog.String("tier", t.Name), slog.String("capacity", bytesString(t.Capacity)),
			slog.Int("blocks", t.Blocks))
	}
	return nil
}
