package sim

import (
	"container/list"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"

	"github.com/quire-ai/quire/internal/workload"
	"github.com/quire-ai/quire/kv"
	"github.com/quire-ai/quire/sched"
)

// TrafficOptions are the sizes of a machine that serves recorded traffic.
type TrafficOptions struct {
	Requests []workload.Request
	Pool     int // blocks of the KV cache
	RAM      int // blocks in host memory: those the pool gave to others
	Disk     int // blocks on disk: those that were filled
	Clients  int // requests at once: the next comes when one has ended
}

// TrafficReport says how much of the prompts was found, and where.
type TrafficReport struct {
	Requests, Blocks int // of prompts; the last block of a prompt may be partial
	Tokens           int // of prompts
	Pool, RAM, Disk  int // tokens found there
	Preemptions      int
	Steps            int
}

// Share is the part of the prompts' tokens that was found.
func (r *TrafficReport) Share() float64 { return float64(r.Pool+r.RAM+r.Disk) / float64(r.Tokens) }

// trafficBlock is the block size: that of the traces at 1:32.
const trafficBlock = 16

// trafficVocab bounds the made-up tokens.
const trafficVocab = 1 << 15

// Traffic serves recorded traffic with the real scheduler and block pool, and tiers that keep what the real ones keep: ram the
// blocks that the pool gives to others, disk all that are filled, each the ones used last. Time does not pass: what is kept
// depends on the order alone.
func Traffic(o TrafficOptions) (*TrafficReport, error) {
	d := &trafficDriver{o: o, tiers: trafficTiers{ram: newLRU(o.RAM), disk: newLRU(o.Disk)}}
	longest := 0
	for i := range o.Requests {
		longest = max(longest, o.Requests[i].Input+o.Requests[i].Output)
	}
	cfg := sched.Config{
		Blocks: o.Pool, BlockSize: trafficBlock, MaxNumSeqs: o.Clients, MaxNumBatchedTokens: 512, MaxModelLen: longest + 1,
		Connector: &d.tiers,
	}
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	d.s = sched.New(cfg)
	for d.next < len(o.Requests) || d.live > 0 {
		if err := d.turn(); err != nil {
			return nil, err
		}
	}
	st := d.s.Stats()
	d.report.Pool = int(st.Prefix.Hit)
	d.report.RAM, d.report.Disk = d.tiers.ram.hits*trafficBlock, d.tiers.disk.hits*trafficBlock
	d.report.Preemptions, d.report.Steps = int(st.Preemptions), int(st.Steps)
	return &d.report, nil
}

// trafficDriver is the loop around the scheduler.
type trafficDriver struct {
	o      TrafficOptions
	s      *sched.Scheduler
	tiers  trafficTiers
	next   int // of o.Requests
	live   int
	done   sched.StepDone
	report TrafficReport
}

// turn lets clients send what they have to, and runs a step.
func (d *trafficDriver) turn() error {
	for ; d.live < d.o.Clients && d.next < len(d.o.Requests); d.next++ {
		r := &d.o.Requests[d.next]
		prompt := r.Prompt(trafficBlock, trafficVocab)
		id := sched.RequestID(strconv.Itoa(d.next))
		for _, c := range d.s.Apply(sched.AddRequest{Request: &sched.Request{ID: id, Prompt: prompt, MaxTokens: r.Output}}) {
			if c.Kind == sched.Refused {
				return fmt.Errorf("request %d: %w", d.next, c.Err)
			}
		}
		d.live++
		d.report.Requests++
		d.report.Tokens += len(prompt)
		d.report.Blocks += len(r.Blocks)
	}
	plan := d.s.Schedule(0)
	if plan.Idle() {
		return fmt.Errorf("nothing runs, with %d requests live", d.live)
	}
	d.tiers.begin(plan)
	d.done.Step, d.done.Outputs = plan.Step, d.done.Outputs[:0]
	for i := range plan.Requests {
		if p := &plan.Requests[i]; p.Sample {
			d.done.Outputs = append(d.done.Outputs, sched.StepOutput{ID: p.ID, Tokens: []int32{int32(d.next)}})
		}
	}
	for _, c := range d.s.Apply(&d.done) {
		if c.Kind == sched.Finished {
			d.live--
		}
	}
	for _, f := range d.s.Filled() {
		for i := f.From; i < f.To; i++ {
			d.tiers.disk.put(f.Hashes[i])
		}
	}
	return nil
}

// trafficTiers is a sched.Connector over what two tiers hold. All loads are done at once.
type trafficTiers struct{ ram, disk lru }

// Match implements sched.Connector, as connector.Chain does: the blocks behind the local hit that a tier holds, without a gap,
// but for the one of the last token.
func (t *trafficTiers) Match(q sched.MatchQuery) sched.Match {
	first := q.Local / trafficBlock
	last := min((len(q.Tokens)-1)/trafficBlock, len(q.Hashes))
	n := 0
	for first+n < last && (t.ram.has(q.Hashes[first+n]) || t.disk.has(q.Hashes[first+n])) {
		n++
	}
	return sched.Match{Tokens: n * trafficBlock}
}

// Finished implements sched.Connector.
func (t *trafficTiers) Finished(sched.RequestID, sched.Epoch, sched.Reason) bool { return false }

// begin takes in what a plan loads and evicts.
func (t *trafficTiers) begin(p *sched.Plan) {
	for _, ld := range p.Loads {
		for i := ld.From / trafficBlock; i < (ld.From+ld.Tokens)/trafficBlock; i++ {
			if !t.ram.use(ld.Hashes[i]) {
				t.disk.use(ld.Hashes[i])
			}
		}
	}
	for _, e := range p.Evicted {
		t.ram.put(e.Hash)
	}
}

// lru is a set of so many hashes, those used last.
type lru struct {
	size  int
	order *list.List // of kv.Hash, the newest first
	at    map[kv.Hash]*list.Element
	hits  int
}

func newLRU(size int) lru { return lru{size: size, order: list.New(), at: map[kv.Hash]*list.Element{}} }

func (l *lru) has(h kv.Hash) bool { return l.at[h] != nil }

// use counts a hit and tells whether it is one.
func (l *lru) use(h kv.Hash) bool {
	e := l.at[h]
	if e == nil {
		return false
	}
	l.order.MoveToFront(e)
	l.hits++
	return true
}

func (l *lru) put(h kv.Hash) {
	switch e := l.at[h]; {
	case l.size == 0:
		return
	case e != nil:
		l.order.MoveToFront(e)
		return
	case l.order.Len() == l.size:
		oldest := l.order.Back()
		delete(l.at, l.order.Remove(oldest).(kv.Hash))
	}
	l.at[h] = l.order.PushFront(h)
}

// Print writes a table.
func (r *TrafficReport) Print(w io.Writer) error {
	fmt.Fprintf(w, "%d requests, %d prompt tokens in %d blocks, %d steps, %d preemptions\n\n",
		r.Requests, r.Tokens, r.Blocks, r.Steps, r.Preemptions)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "found in\ttokens\tof tokens\tof blocks\t")
	row := func(name string, tokens int) {
		fmt.Fprintf(t, "%s\t%d\t%.1f %%\t%.1f %%\t\n", name, tokens,
			100*float64(tokens)/float64(r.Tokens), 100*float64(tokens/trafficBlock)/float64(r.Blocks))
	}
	row("pool", r.Pool)
	row("ram", r.RAM)
	row("disk", r.Disk)
	row("all", r.Pool+r.RAM+r.Disk)
	return t.Flush()
}
