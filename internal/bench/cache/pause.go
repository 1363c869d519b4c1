package cache

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quire-ai/quire/internal/connector"
	"github.com/quire-ai/quire/internal/llm"
)

// recoverWithin is how long a store that goes on may stay unused: the longest pause of the breaker, and some.
const recoverWithin = 45 * time.Second

// Pause compares an engine whose shared store hangs for d with one that has no store. The store is local, which is stopped as
// SIGSTOP does.
func Pause(ctx context.Context, o PairOptions, local *Server, d time.Duration) (report *PairReport, err error) {
	p, err := newPair(ctx, o, llm.Tiers{RAM: -1}, llm.Tiers{RAM: -1, Valkey: local.URL})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	if err := p.untilStored(ctx, 0); err != nil {
		return nil, fmt.Errorf("before the pause: %w", err)
	}
	p.report = PairReport{What: "a shared store that hangs, against none", Goal: 0.95}
	if err := local.Pause(); err != nil {
		return nil, err
	}
	start := time.Now()
	for time.Since(start) < d || len(p.report.Rounds) == 0 {
		o.Progress(fmt.Sprintf("paused for %.0f of %.0f s", time.Since(start).Seconds(), d.Seconds()))
		if err := p.compare(ctx); err != nil {
			return nil, errors.Join(err, local.Resume())
		}
	}
	p.report.Paused = time.Since(start).Seconds()
	before := p.tier().Stored.Blocks
	if err := local.Resume(); err != nil {
		return nil, err
	}
	o.Progress("the store goes on")
	resumed := time.Now()
	if err := p.untilStored(ctx, before); err != nil {
		return nil, fmt.Errorf("after the pause: %w", err)
	}
	p.report.Recovered = time.Since(resumed).Seconds()
	return p.finish(), nil
}

// tier is the shared store as the engine sees it.
func (p *pair) tier() connector.TierStats { return p.with.Tiers.Stats()[0] }

// untilStored serves rounds until the store has taken more than so many blocks.
func (p *pair) untilStored(ctx context.Context, blocks uint64) error {
	for start := time.Now(); p.tier().Stored.Blocks <= blocks || p.tier().Open; {
		if time.Since(start) > recoverWithin {
			return fmt.Errorf("the store is not used within %v: %+v", recoverWithin, p.tier())
		}
		if _, err := p.serve(ctx, p.with); err != nil {
			return err
		}
		p.round++
	}
	return nil
}
