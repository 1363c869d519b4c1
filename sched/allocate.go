package sched

import "github.com/quire-ai/quire/kv"

// allocation asks for the slots of one request's next tokens.
type allocation struct {
	r         *request
	n         int     // tokens to compute
	drafts    int     // of them
	lookahead int     // slots beyond them
	hit       *kv.Hit // local prefix hit, if the request holds nothing yet
	external  int     // tokens to load behind it
	async     bool    // the load takes steps: register nothing yet
	admission bool    // the request is not running: watermark and full-sequence check apply
	reserved  int     // free blocks that others count on
}

// allocate gives a request its slots, or changes nothing and returns false: not now.
func (s *Scheduler) allocate(a allocation) bool {
	r := a.r
	if s.hasRoom(a) {
		return true
	}
	total := r.computed + a.external
	if a.hit != nil {
		total += a.hit.Tokens
	}
	total = min(total, s.cfg.MaxModelLen)
	headroom := 0
	if a.admission && len(s.running) > 0 {
		headroom = s.watermark
	}
	// What the next token computed sees must be held: the last known one is computed in any case, even if a load brings it.
	seen := min(total, len(r.tokens)-1)
	d := kv.Demand{Table: &r.table, Hit: a.hit, Computed: seen}
	if a.admission && !s.cfg.NoFullSequenceCheck {
		d.Tokens, d.Whole = min(len(r.tokens), s.cfg.MaxModelLen), true
		if s.cache.Need(d)+headroom > s.cache.Pool().Free() {
			return false
		}
	}
	slots := min(total+a.n+a.lookahead, s.cfg.MaxModelLen, s.poolMax)
	if len(s.cfg.Groups) > 0 {
		s.cache.Trim(&r.table, max(0, total-r.inFlight))
	}
	d.Tokens, d.Whole = slots, false
	if s.cache.Need(d)+headroom > s.cache.Pool().Free()-a.reserved {
		return false
	}
	if a.hit != nil {
		external := 0
		if a.external > 0 {
			external = total
		}
		s.cache.Attach(&r.table, a.hit, seen, external)
	}
	s.cache.Grow(&r.table, slots)
	if full := r.computed / s.cfg.BlockSize; r.table.Registered(0) > full && !a.admission {
		s.cache.Clean(&r.table, full, (total+a.n)/s.cfg.BlockSize)
	}
	if !a.async {
		s.cache.Register(&r.table, &r.chain, r.tokens[:min(total+a.n, len(r.tokens))])
	}
	return true
}

// hasRoom tells whether a running request has the slots already, and fills no block with them: most decode steps.
func (s *Scheduler) hasRoom(a allocation) bool {
	r, end := a.r, a.r.computed+a.n
	if a.admission || len(s.cfg.Groups) > 0 || end+a.lookahead > r.table.Len(0)*s.cfg.BlockSize {
		return false
	}
	full := r.table.Registered(0)
	return s.cfg.NoPrefixCaching || r.computed/s.cfg.BlockSize == full && min(end, len(r.tokens))/s.cfg.BlockSize == full
}

// reserved returns the blocks that admitted prefills and loads still need for their known tokens. A request whose own
// load brought nothing is among them, as upstream has it; if that ever holds the request itself back, recover steps in.
func (s *Scheduler) reserved() int {
	sum := 0
	for _, r := range s.running {
		sum += s.stillNeeds(r)
	}
	for r := range s.deferred.all {
		sum += s.stillNeeds(r)
	}
	for _, r := range s.skip {
		sum += s.stillNeeds(r)
	}
	return sum
}

func (s *Scheduler) stillNeeds(r *request) int {
	if !r.prefilling {
		return 0
	}
	return s.cache.Need(kv.Demand{Table: &r.table, Computed: r.computed, Tokens: min(len(r.tokens), s.cfg.MaxModelLen), Whole: true})
}
