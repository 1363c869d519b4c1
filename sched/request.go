package sched

import "github.com/quire-ai/quire/kv"

// RequestID names a request. Ids are chosen by the caller and are unique among live requests.
type RequestID string

// Epoch counts the lives of a request: each preemption, restart and end begins a new one. Loads and sends carry the
// epoch in which they began, so that a late completion is recognised and changes nothing but the return of its blocks.
type Epoch uint32

// Request is what the caller hands in. It is not changed and must not be changed while the request lives.
type Request struct {
	ID     RequestID
	Prompt []int32 // at least one token

	MaxTokens int // most output tokens; 0 means up to the model's or the cache's limit
	MinTokens int // EOS and stop tokens do not end the request before so many outputs

	Priority int     // smaller is more urgent; only under the Priority policy
	Arrival  float64 // orders requests of one priority; a number of the caller's clock

	EOS          []int32 // ids that end the request unless IgnoreEOS
	IgnoreEOS    bool
	StopTokenIDs []int32 // ids that end the request, whatever IgnoreEOS says

	CacheSalt string // requests with different salts share no cached block
	SkipCache bool   // do not read the prefix cache (prompt logprobs need every token computed)
	LoRA      string // adapter name, empty for none; the same name must mean the same weights
	Grammar   bool   // wait for GrammarReady before the first admission

	// CacheHitThreshold ends the request instead of running it if less than this share of the prompt, 0 … 1, is found in the
	// pool and behind the connector: vLLM RFC #24256. 0 always runs it. At least the last token is never found, so 1 never does.
	CacheHitThreshold float64
}

// request is the scheduler's own record of a live request.
type request struct {
	*Request

	state  State
	epoch  Epoch
	seq    uint64   // order of arrival at the scheduler, unique
	tokens []int32  // known: prompt, then outputs
	chain  kv.Chain // hashes of the full blocks of tokens
	table  kv.Table // blocks held
	spec   []int32  // drafts to verify in the next step

	computed     int    // tokens whose KV is computed, or will be once the steps in flight are done
	placeholders int    // outputs in flight whose ids are not known yet (asynchronous scheduling)
	inFlight     int    // tokens in steps not yet retired
	stale        int    // of those, tokens scheduled before the last preemption, whose outputs are still delivered
	discard      int    // of those, tokens whose outputs mean nothing
	dropBefore   Epoch  // rows planned in an older epoch than this are the ones to discard
	resident     Epoch  // in which it was admitted last: rows planned since then filled blocks of its table
	admitted     uint64 // the step of that
	prefillChunk bool   // the last plan left known tokens to compute
	prefilling   bool   // an admitted prefill or load whose remaining blocks others' loads must leave free
	cached       int    // tokens found computed at first admission, −1 before
	preemptions  int
	highWater    int // most tokens ever computed: what lies below is recomputation

	load    loadState // of the external load of this epoch
	loaded  int       // loads begun
	sending bool      // finished, and a transfer out of its blocks is still running

	grammar    grammarState
	grammarErr string

	since          float64 // when it came into its state, by the clock of the last Schedule
	deferred       bool    // the connector's last answer was "ask later"
	yielded        bool    // it preempted itself once for blocks that parked requests hold: see reclaim
	spoiled        bool    // some of its blocks turned out bad in the step that is being taken in
	spoiledFatally bool    // and it ends for that
	retiring       int     // its computed tokens that are of that step, while bad blocks are looked for
	badFrom        int     // the first of its blocks that is bad, while they are looked for; −1 for none
	planned        int     // index into the plan being built, −1 if not planned
	fromDeferred   bool    // scratch of the recovery pass

	queue            *queue // that holds it, nil while it is running or about to be put back
	qprev, qnext     *request
	heapIndex        int
	allPrev, allNext *request // live requests in order of arrival
}

// outputs returns the number of output tokens known.
func (r *request) outputs() int { return len(r.tokens) - len(r.Prompt) }

// before is the order of the Priority policy.
func (r *request) before(o *request) bool {
	if r.Priority != o.Priority {
		return r.Priority < o.Priority
	}
	if r.Arrival != o.Arrival {
		return r.Arrival < o.Arrival
	}
	return r.ID < o.ID
}
