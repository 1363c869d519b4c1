package main

import (
	"os"
	"path/filepath"

	"github.com/quire-ai/quire/internal/catalog"
	"github.com/quire-ai/quire/internal/config"
	"github.com/quire-ai/quire/internal/llm"
)

// tiers says where KV goes that leaves the cache.
func (cmd *serveCmd) tiers() (llm.Tiers, error) {
	c := &cmd.Cache
	t := llm.Tiers{RAM: int64(c.KVRAM), Disk: c.KVDisk, DiskBytes: int64(c.KVDiskSize), Valkey: c.KVValkey}
	switch c.KVRAM { // what is 0 here is "as you like" there
	case config.Auto:
		t.RAM = 0
	case 0:
		t.RAM = -1
	}
	switch {
	case c.KVDisk == "off" || c.KVDisk == "" || c.KVDiskSize == 0:
		t.Disk = ""
	case c.KVDisk == "auto":
		models, err := catalog.ConfigFromEnv(os.Getenv)
		if err != nil {
			return t, err
		}
		t.Disk, t.DiskOptional = filepath.Join(filepath.Dir(models.Dir), "kv"), true
	}
	if c.KVDiskSize == config.Auto {
		t.DiskBytes = 0
	}
	return t, nil
}
