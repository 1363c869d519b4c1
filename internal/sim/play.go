package sim

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/quire-ai/quire/kv"
	"github.com/quire-ai/quire/sched"
)

// play is the state of a running script: a scheduler, the toy model, and a store that does as it is told.
type play struct {
	out strings.Builder

	cfg    sched.Config
	s      *sched.Scheduler
	toy    *toy
	store  *cueStore
	specs  map[sched.RequestID]*playRequest
	flying []playStep // plans not yet returned, oldest first
	step   int
	fault  sched.Fault
	quiet  bool // after a burst, drain prints how many ended and how, not each
	known  bool // what is being played was played before, with every check on: no audits
}

// playRequest is a request of a script, and what it has got so far.
type playRequest struct {
	*sched.Request
	text    []int32
	started bool          // a plan listed it as new
	ends    map[int]int32 // output position → token the toy samples there
	end     *sched.Change
}

// playStep is a plan in flight.
type playStep struct {
	step    uint64
	outputs []sched.StepOutput
	rows    []playRow    // in plan order
	bad     []kv.BlockID // that its synchronous loads could not fill
}

// playRow is a request's part of a plan in flight.
type playRow struct {
	id     sched.RequestID
	filled []kv.BlockID
}

// cueStore is a connector that answers as the script said.
type cueStore struct {
	cues  map[sched.RequestID]sched.Match
	holds map[sched.RequestID]bool
	loads map[sched.RequestID]sched.Load // the last of each
	sends map[sched.RequestID]sched.Epoch
	fails map[sched.RequestID]int // synchronous loads that will bring nothing
}

// Match implements sched.Connector.
func (c *cueStore) Match(q sched.MatchQuery) sched.Match {
	m := c.cues[q.Request.ID]
	m.Tokens = max(0, min(m.Tokens, len(q.Tokens))-q.Local)
	return m
}

// Finished implements sched.Connector.
func (c *cueStore) Finished(id sched.RequestID, epoch sched.Epoch, _ sched.Reason) bool {
	if c.holds[id] {
		c.sends[id] = epoch
	}
	return c.holds[id]
}

// command runs one command of a script.
func (p *play) command(name string, a *arguments) error {
	if p.s == nil && name != "pool" {
		return errors.New("a script begins with the command pool")
	}
	switch name {
	case "pool":
		return p.pool(a)
	case "add":
		return p.add(a)
	case "burst":
		return p.burst(a)
	case "external":
		return p.external(a)
	case "hold":
		p.store.holds[sched.RequestID(a.word())] = true
	case "abort", "grammar", "reset", "pause", "load-done", "load-fail", "send-done":
		return p.event(name, a)
	case "schedule":
		quiet := a.has("quiet")
		if err := a.finish(); err != nil {
			return err
		}
		p.schedule(!quiet)
	case "done":
		return p.done(a)
	case "spoil":
		if len(p.flying) == 0 {
			return errors.New("no plan is in flight")
		}
		p.spoil(&p.flying[len(p.flying)-1], sched.RequestID(a.word()))
	case "step":
		return p.steps(a)
	case "drain":
		return p.drain(a)
	case "state":
		p.state()
	case "free":
		fmt.Fprintf(&p.out, "%d free %v\n", p.s.Pool().Free(), p.s.Pool().AppendFree([]kv.BlockID{}, a.num("n", 6)))
	case "events":
		for _, e := range p.s.AppendEvents(nil) {
			fmt.Fprintln(&p.out, e)
		}
	case "stats":
		p.stats()
	case "explain":
		e := p.s.Explain()
		fmt.Fprintf(&p.out, "%s: %s\n", e.Head, e.Why)
	case "text":
		id := sched.RequestID(a.word())
		if r := p.specs[id]; r != nil {
			fmt.Fprintf(&p.out, "%v\n", r.text)
		}
	default:
		return errors.New("unknown command")
	}
	return a.finish()
}

// pool makes a new scheduler.
func (p *play) pool(a *arguments) error {
	cfg := sched.Config{
		Blocks: a.num("blocks", 16), BlockSize: a.num("block-size", 16), MaxNumSeqs: a.num("seqs", 8),
		MaxNumBatchedTokens: a.num("budget", 512), MaxModelLen: a.num("max-len", 4096),
		LongPrefillThreshold: a.num("threshold", 0), MaxLoRAs: a.num("loras", 0), PipelineDepth: a.num("depth", 1),
		Watermark:        float64(a.num("watermark-permille", 0)) / 1000,
		NoChunkedPrefill: a.has("no-chunks"), NoPrefixCaching: a.has("no-cache"),
		NoFullSequenceCheck: a.has("no-full-check"), AsyncScheduling: a.has("async"), KVEvents: a.has("events"),
	}
	if a.str("policy", "fcfs") == "priority" {
		cfg.Policy = sched.Priority
	}
	if a.str("load-failure", "recompute") == "fail" {
		cfg.LoadFailure = sched.Fail
	}
	for _, w := range a.nums("windows") {
		cfg.Groups = append(cfg.Groups, kv.Group{Window: w})
	}
	cfg.TestOnlyFault = p.fault
	store := &cueStore{
		cues: map[sched.RequestID]sched.Match{}, holds: map[sched.RequestID]bool{},
		loads: map[sched.RequestID]sched.Load{}, sends: map[sched.RequestID]sched.Epoch{},
		fails: map[sched.RequestID]int{},
	}
	if a.has("connector") {
		cfg.Connector = store
	}
	if err := a.finish(); err != nil {
		return err
	}
	if err := checkSize(&cfg); err != nil {
		return err
	}
	p.cfg, p.s, p.store = cfg, sched.New(cfg), store
	p.toy = newToy(cfg)
	p.specs = map[sched.RequestID]*playRequest{}
	p.flying, p.step, p.quiet = nil, 0, false
	return nil
}

// add adds requests. The prompt is made up from the id, or from the word after prefix for its first tokens, so that
// requests with one prefix share blocks.
func (p *play) add(a *arguments) error {
	names := strings.Split(a.word(), ",")
	spec := sched.Request{
		MaxTokens: a.num("out", 0), MinTokens: a.num("min", 0), Priority: a.num("priority", 0),
		CacheSalt: a.str("salt", ""), LoRA: a.str("lora", ""), SkipCache: a.has("skip-cache"), Grammar: a.has("grammar"),
		CacheHitThreshold: float64(a.num("threshold-percent", 0)) / 100,
		EOS:               []int32{traceEOS}, StopTokenIDs: []int32{traceStop}, IgnoreEOS: a.has("ignore-eos"),
	}
	ends := map[int]int32{}
	if k := a.num("eos-at", -1); k >= 0 {
		ends[k] = traceEOS
	}
	if k := a.num("stop-at", -1); k >= 0 {
		ends[k] = traceStop
	}
	prompt, prefix, shared := a.num("prompt", 16), a.str("prefix", ""), a.num("shared", 0)
	if err := a.finish(); err != nil {
		return err
	}
	if prompt < 0 || prompt > maxPromptTokens || shared > prompt {
		return fmt.Errorf("prompt of %d tokens, %d of them shared", prompt, shared)
	}
	for _, name := range names {
		r := spec
		r.ID = sched.RequestID(name)
		r.Arrival = float64(len(p.specs))
		r.Prompt = append(madeUp(prefix, shared), madeUp(name, prompt)[shared:]...)
		p.addRequest(&r, ends)
	}
	return nil
}

func (p *play) addRequest(r *sched.Request, ends map[int]int32) {
	if old := p.specs[r.ID]; old == nil || old.end != nil {
		p.specs[r.ID] = &playRequest{Request: r, ends: ends}
		p.toy.ends[r.ID] = ends
	}
	for _, c := range p.s.Apply(sched.AddRequest{Request: r}) {
		if c.Kind == sched.Refused {
			fmt.Fprintln(&p.out, c)
		}
	}
}

// burst adds many requests of one shape, named by numbers.
func (p *play) burst(a *arguments) error {
	n, prompt, out := a.num("n", 10), a.num("prompt", 16), a.num("out", 1)
	if err := a.finish(); err != nil {
		return err
	}
	if n > maxTraceRequests || prompt > maxPromptTokens {
		return fmt.Errorf("%d requests of %d tokens", n, prompt)
	}
	p.quiet = true
	for i := range n {
		id := fmt.Sprintf("%05d", i)
		r := &sched.Request{
			ID: sched.RequestID(id), Prompt: madeUp(id, prompt), MaxTokens: out, Arrival: float64(len(p.specs)), IgnoreEOS: true,
		}
		p.addRequest(r, nil)
	}
	return nil
}

// madeUp returns n tokens that depend on the word.
func madeUp(word string, n int) []int32 {
	seed := uint64(14695981039346656037)
	for _, c := range word {
		seed = (seed ^ uint64(c)) * 1099511628211
	}
	tokens := make([]int32, n)
	for i := range tokens {
		seed = seed*6364136223846793005 + 1442695040888963407
		tokens[i] = int32(seed>>33)%50000 + 3
	}
	return tokens
}

// external sets what the store answers for a request.
func (p *play) external(a *arguments) error {
	id := sched.RequestID(a.word())
	m := sched.Match{Deferred: a.has("later"), Async: !a.has("sync"), Tokens: a.num("tokens", 0)}
	p.store.cues[id], p.store.fails[id] = m, a.num("fails", 0)
	return a.finish()
}

// event applies one of the plain events.
func (p *play) event(name string, a *arguments) error {
	var ev sched.Event
	switch name {
	case "abort":
		ev = sched.Abort{ID: sched.RequestID(a.word())}
	case "grammar":
		ev = sched.GrammarReady{ID: sched.RequestID(a.word()), Err: a.str("error", "")}
	case "reset":
		ev = sched.ResetPrefixCache{Running: a.has("running")}
	case "pause":
		ev = sched.Pause{Level: sched.PauseLevel(a.num("level", 2))}
	case "load-done", "load-fail":
		ld := sched.LoadDone{ID: sched.RequestID(a.word())}
		last := p.store.loads[ld.ID]
		if name == "load-fail" {
			for _, t := range last.Tables {
				ld.Bad = append(ld.Bad, t[last.From/p.cfg.BlockSize:]...)
			}
		}
		ld.Epoch = sched.Epoch(a.num("epoch", int(last.Epoch)))
		for _, b := range a.nums("bad") {
			ld.Bad = append(ld.Bad, kv.BlockID(b))
		}
		if ld.Epoch == last.Epoch {
			p.finishLoad(last, ld.Bad)
			delete(p.store.loads, ld.ID)
		}
		ev = ld
	case "send-done":
		id := sched.RequestID(a.word())
		ev = sched.SendDone{ID: id, Epoch: sched.Epoch(a.num("epoch", int(p.store.sends[id])))}
	}
	if err := a.finish(); err != nil {
		return err
	}
	p.report(p.s.Apply(ev), true)
	return p.audit()
}

// audit checks the scheduler's whole state.
func (p *play) audit() error {
	if p.known {
		return nil
	}
	return p.s.Audit()
}

// finishLoad puts into memory what a load brings.
func (p *play) finishLoad(ld sched.Load, bad []kv.BlockID) {
	r := p.specs[ld.ID]
	if r == nil || len(ld.Tables) == 0 {
		return
	}
	tokens := append(slices.Clone(r.Prompt), r.text...)
	p.toy.load(ld.Tables, tokens, ld.From, ld.From+ld.Tokens, func(b kv.BlockID) bool { return slices.Contains(bad, b) })
}

// report notes changes and prints them.
func (p *play) report(changes []sched.Change, print bool) {
	for _, c := range changes {
		r := p.specs[c.ID]
		switch c.Kind {
		case sched.Emitted:
			r.text = append(r.text, c.Token)
		case sched.Finished:
			if r.end != nil {
				fmt.Fprintf(&p.out, "FAULT: %s ended twice\n", c.ID)
			}
			end := c
			r.end = &end
			p.checkText(r)
		}
		if print && c.Kind != sched.Emitted {
			fmt.Fprintln(&p.out, c)
		}
	}
}

// checkText says so if a request's tokens are not those of the same request run alone.
func (p *play) checkText(r *playRequest) {
	if want := solo(r.Prompt, len(r.text), p.cfg.BlockSize, r.ends); !slices.Equal(r.text, want) {
		fmt.Fprintf(&p.out, "FAULT: %s differs from the solo run\n", r.ID)
	}
}

// loading returns the ids of requests whose loads are in flight, in order.
func (p *play) loading() []string {
	var ids []string
	for id, ld := range p.store.loads {
		if ld.Async {
			ids = append(ids, string(id))
		}
	}
	slices.Sort(ids)
	return ids
}
