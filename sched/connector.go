package sched

import "github.com/quire-ai/quire/kv"

// Connector answers, at once and from memory, what an external KV store holds. It is how the core sees tiers and
// remote stores: as values. Transfers themselves are begun by whoever executes the Plan, and end as LoadDone and
// SendDone events.
type Connector interface {
	// Match says how many tokens beyond the local hit can be loaded. It is asked at every admission attempt, also when
	// the admission then fails, and must change nothing.
	Match(q MatchQuery) Match

	// Finished tells the store that a request ended, while it still holds its blocks. True keeps the blocks until a
	// SendDone of this request's epoch arrives.
	Finished(id RequestID, epoch Epoch, reason Reason) (hold bool)
}

// MatchQuery is the question to a Connector. Its slices are views, valid during the call.
type MatchQuery struct {
	Request *Request
	Tokens  []int32   // known tokens
	Hashes  []kv.Hash // of the full blocks; empty without prefix caching
	Local   int       // leading tokens found in the local prefix cache
	Loads   int       // loads begun for this request before
}

// Match is the answer: tokens, none, or not yet. Of a windowed cache group a load brings only the blocks that lie within the
// window behind the last of the tokens (kv.Group.Skipped), less what the local hit holds of them.
type Match struct {
	Tokens   int  // tokens that can be loaded behind the local hit; a synchronous load must leave one to compute
	Async    bool // the load takes steps: the request waits for its LoadDone
	Deferred bool // ask again later; Tokens means nothing
}

// Load asks the executor to bring external KV into blocks.
type Load struct {
	ID     RequestID
	Epoch  Epoch // to be given back in LoadDone
	Number int   // 1 for the request's first load
	From   int   // tokens [From, From+Tokens) are to be loaded
	Tokens int
	Hashes []kv.Hash // of the request's full blocks; a view, valid until the next call of Apply or Schedule
	Async  bool      // false: before the step's rows run; failures are reported with the step

	// Tables are the whole block tables of the cache groups; views, as in Planned. In each the blocks that hold the tokens are
	// to be filled, but not the null ones, which lie left of the group's window.
	Tables [][]kv.BlockID
}

// Filled is a run of blocks that a retired step completed: full, computed and registered. A connector may copy them out
// of the pool before the next plan is executed. The slices are views, valid until the next call of Apply or Schedule.
type Filled struct {
	ID       RequestID
	From, To int            // the blocks [From, To) of the request are the new ones
	Hashes   []kv.Hash      // of the request's full blocks, from its first
	Tables   [][]kv.BlockID // the request's blocks in each cache group, from its first; null ones lie left of a window
}

// loadMatch is an external hit between lookup and admission.
type loadMatch struct {
	tokens int
	async  bool
}

// loadState is where the external load of the current epoch stands.
type loadState uint8

const (
	loadNone     loadState = iota
	loadPending            // in flight
	loadFailed             // in flight, and some of its blocks are known to be bad; computed says what is good
	loadReceived           // done, not yet promoted
	loadBroken             // done, with bad blocks, not yet promoted
)

// done tells whether the transfer has ended.
func (l loadState) done() bool { return l == loadReceived || l == loadBroken }

// grammarState is where a request's grammar stands.
type grammarState uint8

const (
	grammarNone grammarState = iota
	grammarPending
	grammarReady
	grammarFailed
)
