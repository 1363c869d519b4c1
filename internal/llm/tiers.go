package llm

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/quire-ai/quire/internal/connector"
	"github.com/quire-ai/quire/internal/connector/chunk"
	"github.com/quire-ai/quire/internal/connector/ram"
	"github.com/quire-ai/quire/internal/executor"
	"github.com/quire-ai/quire/internal/model"
)

// Tiers says where KV goes that leaves the pool. The zero value chooses what surprises nobody.
type Tiers struct {
	// RAM is the memory for blocks that the pool gave to others, in bytes, taken as it is needed. 0 takes an eighth of the
	// memory that is free once the weights are loaded, but no more than 8 GiB; negative takes none.
	RAM int64
}

// ramShare and ramLimit bound a ram tier whose size nobody chose.
const (
	ramShare = 8       // an eighth of the free memory
	ramLimit = 8 << 30 // bytes
)

// openTiers makes the chain of tiers behind the executor's KV memory, nil if there is none. free is the memory left when
// nothing of the KV cache was taken yet.
func openTiers(o Options, ex *executor.Executor, weights *model.Model) (*connector.Chain, error) {
	s := &o.Engine.Sched
	if s.NoPrefixCaching || len(s.Groups) > 1 {
		return nil, nil
	}
	format := chunk.Format{Blocks: 1, BlockBytes: ex.KV().BlockBytes()}
	cfg := connector.Config{Memory: ex.KV(), Format: format, BlockSize: s.BlockSize, Log: o.Log}
	bytes := o.Tiers.RAM
	if bytes == 0 {
		if free, err := FreeMemory(); err == nil { // where it cannot be read, nobody gets a tier unasked
			bytes = min(free/ramShare, ramLimit)
		}
	}
	if bytes >= int64(format.BlockBytes) {
		cache, err := ram.New(bytes, format.BlockBytes)
		if err != nil {
			return nil, err
		}
		cfg.RAM = cache
	} else if o.Tiers.RAM > 0 {
		return nil, fmt.Errorf("ram tier of %s holds no block: one of %d tokens takes %s",
			bytesString(bytes), s.BlockSize, bytesString(int64(format.BlockBytes)))
	}
	if cfg.RAM == nil && len(cfg.Stores) == 0 {
		return nil, nil
	}
	return connector.New(cfg)
}

// sayTiers logs what is behind the pool.
func sayTiers(log *slog.Logger, chain *connector.Chain) {
	for _, t := range chain.Stats() {
		log.Info("KV tier", slog.String("tier", t.Name), slog.Int64("capacity_bytes", t.Capacity), slog.Int("blocks", t.Blocks))
	}
}

// withTiers gives the engine its connector. The chain is the engine's from then on.
func (m *Model) withTiers(o *Options, ex *executor.Executor, weights *model.Model) error {
	chain, err := openTiers(*o, ex, weights)
	if err != nil {
		return errors.Join(err, ex.Close())
	}
	if chain != nil {
		m.Tiers = chain
		o.Engine.Connector = chain
		sayTiers(o.Log, chain)
	}
	return nil
}
