package sim

import (
	"fmt"
	"math/rand/v2"
)

// Profiles returns the names of the kinds of random runs.
func Profiles() []string {
	return []string{"mixed", "pressure", "priority", "loads", "pipeline", "groups", "tiers", "drafts"}
}

// Scenario makes up a run from a seed: a configuration, requests, operations and a store's behaviour. The same seed and
// profile give the same scenario. Profile mixed chooses one of the others by the seed.
func Scenario(seed uint64, profile string) (*Header, error) {
	rng := rand.New(rand.NewPCG(seed, 0x5155495245)) // "QUIRE"
	if profile == "mixed" || profile == "" {
		others := Profiles()[1:]
		profile = others[rng.IntN(len(others))]
	}
	g := &generator{rng: rng, h: &Header{
		Type: "header", Format: 1, Name: fmt.Sprintf("%s-%d", profile, seed), Kind: profile, Outputs: "history",
		Features: []string{}, Ops: []Op{},
	}}
	g.config()
	switch profile {
	case "pressure":
	case "priority":
		g.h.Config.Policy = "priority"
	case "loads":
		g.h.Connector = true
		if g.chance(3) {
			g.h.Config.Policy = "priority"
		}
	case "pipeline":
		g.h.Config.PipelineDepth = 2
		g.h.Config.AsyncScheduling = !g.chance(4)
		g.h.Connector = g.chance(2)
	case "groups":
		g.groups()
	case "tiers": // windows, and a store behind them
		g.groups()
		g.h.Connector = true
		g.h.Config.PipelineDepth = pick(g, 1, 1, 2)
		g.h.Config.AsyncScheduling = g.h.Config.PipelineDepth == 2 && g.chance(2)
		if g.chance(3) {
			g.h.Config.Policy = "priority"
		}
	case "drafts":
		g.h.Outputs = "" // a draft's acceptance is a formula of the recorded format
		g.h.Config.NumSpecTokens = 1 + rng.IntN(4)
		g.h.Config.Eagle = g.chance(2)
	default:
		return nil, fmt.Errorf("unknown profile %q", profile)
	}
	g.requests()
	g.ops()
	return g.h, g.h.check()
}

// generator makes up one scenario.
type generator struct {
	rng   *rand.Rand
	h     *Header
	until int // last step at which something arrives
}

// chance is true once in n times.
func (g *generator) chance(n int) bool { return g.rng.IntN(n) == 0 }

// pick returns one of the values.
func pick[T any](g *generator, values ...T) T { return values[g.rng.IntN(len(values))] }

// config makes up a small machine: small pools and budgets are where schedulers go wrong.
func (g *generator) config() {
	bs := pick(g, 1, 2, 4, 4, 8, 16)
	blocks := 3 + g.rng.IntN(pick(g, 6, 12, 40))
	g.h.Config = TraceConfig{
		BlockSize: bs, NumBlocks: blocks + 1,
		MaxNumSeqs:           1 + g.rng.IntN(pick(g, 2, 6, 16)),
		MaxNumBatchedTokens:  1 + g.rng.IntN(pick(g, bs*2, bs*8, bs*blocks)),
		MaxModelLen:          2 + g.rng.IntN(bs*blocks*3/2+4),
		EnableChunkedPrefill: !g.chance(8),
		Policy:               "fcfs", EnablePrefixCaching: !g.chance(4), ReserveFullISL: !g.chance(4),
		Watermark: pick(g, 0, 0, 0.05, 0.2, 0.5), LoadFailurePolicy: pick(g, "recompute", "recompute", "fail"),
		PipelineDepth: 1, Groups: []string{"full"}, KVEvents: g.chance(4), MaxLoRAs: pick(g, 0, 0, 0, 1, 2),
		LongPrefillThreshold: pick(g, 0, 0, 0, bs, bs*2+1),
	}
}

// groups gives the model sliding-window layers beside the full ones.
func (g *generator) groups() {
	c := &g.h.Config
	for range 1 + g.rng.IntN(2) {
		c.Groups = append(c.Groups, fmt.Sprintf("swa:%d", 1+g.rng.IntN(c.BlockSize*4)))
	}
	c.NumBlocks *= len(c.Groups)
}

func (g *generator) requests() {
	c := &g.h.Config
	most := c.MaxModelLen - 1
	n := 1 + g.rng.IntN(pick(g, 3, 8, 24))
	families := 1 + g.rng.IntN(3)
	spread := pick(g, 1, 4, 30)
	for i := range n {
		prompt := 1 + g.rng.IntN(max(1, min(most, c.BlockSize*pick(g, 2, 5, 20))))
		if g.chance(20) {
			prompt = 1 + g.rng.IntN(most+2) // perhaps too long
		}
		r := TraceRequest{
			ID: fmt.Sprintf("r%03d", i), Index: i, Arrive: g.rng.IntN(spread), ArrivalTime: float64(i),
			MaxTokens: 1 + g.rng.IntN(pick(g, 3, 10, 40)),
			Prompt:    [][3]int{{7000 + g.rng.IntN(families), 0, g.rng.IntN(prompt + 1)}},
		}
		r.Prompt = append(r.Prompt, [3]int{9000 + i, 0, prompt - r.Prompt[0][2]})
		g.until = max(g.until, r.Arrive)
		g.traits(&r)
		g.h.Requests = append(g.h.Requests, r)
	}
}

// traits gives a request what not every request has.
func (g *generator) traits(r *TraceRequest) {
	if g.h.Config.Policy == "priority" {
		r.Priority = g.rng.IntN(3)
	}
	if g.chance(4) {
		r.EOSAt = new(g.rng.IntN(r.MaxTokens))
		r.MinTokens = g.rng.IntN(r.MaxTokens)
	}
	if g.chance(8) {
		r.StopAt = new(g.rng.IntN(r.MaxTokens))
	}
	if g.h.Outputs == "history" && g.chance(12) {
		r.FailAt = new(g.rng.IntN(r.MaxTokens))
	}
	if g.chance(8) {
		r.Salt = pick(g, "x", "y")
	}
	if g.h.Config.MaxLoRAs > 0 && g.chance(2) {
		r.LoRA = new(1 + g.rng.IntN(3))
	}
	r.SkipCache = g.chance(10)
	switch {
	case g.chance(20):
		r.GrammarReady = new(r.Arrive + g.rng.IntN(10))
	case g.chance(40):
		r.GrammarError = new(r.Arrive + g.rng.IntN(10))
	}
	if g.h.Connector && !g.chance(4) {
		r.External = g.external(r)
	}
}

// external makes up what the store does for a request: loads that are late, partial, or come to nothing.
func (g *generator) external(r *TraceRequest) *Ext {
	bs := g.h.Config.BlockSize
	total := r.Prompt[0][2] + r.Prompt[1][2]
	e := &Ext{
		Hit: g.rng.IntN(total + 1), Mode: pick(g, "async", "async", "async", "sync"), Latency: g.rng.IntN(pick(g, 2, 6, 25)),
		Defers: pick(g, 0, 0, 0, g.rng.IntN(5)),
	}
	if g.chance(2) {
		e.Hit = e.Hit / bs * bs
	}
	if g.chance(4) {
		e.Reload = new(false)
	}
	if g.chance(3) {
		for range 1 + g.rng.IntN(3) {
			e.FailBlocks = append(e.FailBlocks, g.rng.IntN(total/bs+1))
		}
		e.FailTimes = new(1 + g.rng.IntN(2))
	}
	if g.chance(4) {
		e.SendDelay = 1 + g.rng.IntN(8)
	}
	return e
}

// ops makes up aborts, resets and pauses; a pause ends.
func (g *generator) ops() {
	until := g.until + 30
	for i := range g.h.Requests {
		if r := &g.h.Requests[i]; g.chance(6) {
			g.h.Ops = append(g.h.Ops, Op{Step: r.Arrive + g.rng.IntN(20), Op: "abort", IDs: []string{r.ID}})
		}
	}
	for range pick(g, 0, 0, 0, 1, 2) {
		g.h.Ops = append(g.h.Ops, Op{Step: g.rng.IntN(until), Op: "reset_prefix_cache", ResetRunning: g.chance(2)})
	}
	if g.chance(6) {
		start := g.rng.IntN(until)
		g.h.Ops = append(g.h.Ops, Op{Step: start, Op: "pause", Level: 1 + g.rng.IntN(2)})
		g.h.Ops = append(g.h.Ops, Op{Step: start + 1 + g.rng.IntN(8), Op: "pause"})
	}
	sortOps(g.h.Ops)
}
