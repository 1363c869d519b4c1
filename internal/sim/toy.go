package sim

import (
	"encoding/binary"
	"slices"
	"strings"

	"github.com/quire-ai/quire/kv"
	"github.com/quire-ai/quire/sched"
)

// toy stands in for the model. Like one it keeps what it computed in blocks, and reads the history of a token back
// through the block table: each slot holds a digest of its token and everything before it, and a digest is computed from
// the digests that the table leads to. So a wrong, stale or unwritten block changes the tokens, while right ones make
// them a function of the prompt alone, whatever was batched, chunked, preempted, shared or loaded.
type toy struct {
	blockSize int
	memory    [][]uint64 // [block][slot]
	seqs      map[sched.RequestID]*toySeq
	ends      map[sched.RequestID]map[int]int32 // request → output position → the token to sample there

	windows []int // of the further cache groups, 0 for full attention
}

// toySeq is what an executor remembers of a request between plans.
type toySeq struct {
	table []kv.BlockID
	more  [][]kv.BlockID // tables of the further groups
	last  int32          // sampled last: what is computed next if its id was not known when the plan was made
}

func newToy(cfg sched.Config) *toy {
	blocks, blockSize := cfg.Blocks, cfg.BlockSize
	y := &toy{blockSize: blockSize, seqs: map[sched.RequestID]*toySeq{}, ends: map[sched.RequestID]map[int]int32{}}
	for i := 1; i < len(cfg.Groups); i++ {
		y.windows = append(y.windows, cfg.Groups[i].Window)
	}
	y.memory = make([][]uint64, blocks+1)
	for b := range y.memory {
		y.memory[b] = make([]uint64, blockSize)
	}
	return y
}

// history is a run of digests: what attention over the slots before a token comes to.
type history struct {
	blocks uint64 // over the last slots of the full blocks
	prev   uint64 // of the token before
}

// next returns the digest of a token that follows.
func (h history) next(token int32) uint64 {
	x := h.blocks*0x9e3779b97f4a7c15 ^ h.prev ^ uint64(token)<<32 + uint64(token) + 1
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// push takes the digest at position p into the history.
func (h *history) push(digest uint64, p, blockSize int) {
	h.prev = digest
	if (p+1)%blockSize == 0 {
		h.blocks = h.blocks*31 + digest
	}
}

// sampleOf returns the token that a digest leads to.
func sampleOf(digest uint64) int32 { return int32(digest%50000) + 3 }

// read returns the history before position p, as it stands in memory.
func (y *toy) read(table []kv.BlockID, p int) history {
	var h history
	for b := range p / y.blockSize {
		h.blocks = h.blocks*31 + y.memory[table[b]][y.blockSize-1]
	}
	if p > 0 {
		h.prev = y.memory[table[(p-1)/y.blockSize]][(p-1)%y.blockSize]
	}
	return h
}

// run computes a plan and returns its outputs.
func (y *toy) run(p *sched.Plan) []sched.StepOutput {
	for _, id := range p.Finished {
		delete(y.seqs, id)
	}
	var outs []sched.StepOutput
	for i := range p.Requests {
		r := &p.Requests[i]
		q := y.seqs[r.ID]
		if q == nil {
			q = &toySeq{}
			y.seqs[r.ID] = q
		}
		if r.Kind != sched.KindRunning {
			q.table, q.more = q.table[:0], nil
		}
		q.table = append(q.table, r.Blocks...)
		for g, blocks := range r.MoreBlocks {
			if len(q.more) <= g {
				q.more = append(q.more, nil)
			}
			q.more[g] = append(q.more[g], blocks...)
		}
		digest := y.compute(q, r)
		if r.Sample {
			token := sampleOf(digest)
			if t, ok := y.ends[r.ID][r.Outputs]; ok {
				token = t
			}
			q.last = token
			outs = append(outs, sched.StepOutput{ID: r.ID, Tokens: []int32{token}})
		}
	}
	return outs
}

// compute fills the slots of a row's tokens and returns the last digest.
func (y *toy) compute(q *toySeq, r *sched.Planned) uint64 {
	h := y.read(q.table, r.From)
	for p := r.From; p < r.From+r.N; p++ {
		token := q.last
		if p-r.From < len(r.Tokens) {
			token = r.Tokens[p-r.From]
		}
		digest := h.next(token)
		for g := range q.more {
			digest += y.missing(q, g, p) * 0xd1342543de82ef95
		}
		y.memory[q.table[p/y.blockSize]][p%y.blockSize] = digest
		for g := range q.more {
			y.memory[q.more[g][p/y.blockSize]][p%y.blockSize] = digest
		}
		h.push(digest, p, y.blockSize)
	}
	return h.prev
}

// missing counts the tokens that the one at position p attends to in a further group and that are not there, as the first
// group has them.
func (y *toy) missing(q *toySeq, g, p int) uint64 {
	first, n := 0, uint64(0)
	if w := y.windows[g]; w > 0 {
		first = max(0, p-w+1)
	}
	for j := first; j < p; j++ {
		if y.memory[q.more[g][j/y.blockSize]][j%y.blockSize] != y.memory[q.table[j/y.blockSize]][j%y.blockSize] {
			n++
		}
	}
	return n
}

// spoil puts rubbish into the blocks that a row filled.
func (y *toy) spoil(r *sched.Planned) {
	q := y.seqs[r.ID]
	for _, table := range append(q.more, q.table) {
		for _, b := range table[r.From/y.blockSize : (r.From+r.N+y.blockSize-1)/y.blockSize] {
			clear(y.memory[b])
		}
	}
}

// load fills the slots of tokens [from, to) of a sequence with what computing it would have put there, in all groups.
func (y *toy) load(tables [][]kv.BlockID, tokens []int32, from, to int, bad func(kv.BlockID) bool) {
	var h history
	for p := range to {
		digest := h.next(tokens[p])
		h.push(digest, p, y.blockSize)
		for _, table := range tables {
			if b := table[p/y.blockSize]; p >= from && b != kv.Null && !bad(b) {
				y.memory[b][p%y.blockSize] = digest
			}
		}
	}
}

// solo returns the first n tokens that follow the prompt when nothing else is there.
func solo(prompt []int32, n, blockSize int, ends map[int]int32) []int32 {
	var h history
	tokens := prompt
	for p := range len(prompt) + n - 1 {
		digest := h.next(tokens[p])
		h.push(digest, p, blockSize)
		if p >= len(prompt)-1 {
			token := sampleOf(digest)
			if t, ok := ends[p-len(prompt)+1]; ok {
				token = t
			}
			tokens = append(tokens[:len(tokens):len(tokens)], token)
		}
	}
	return tokens[len(prompt):]
}

// fingerprint describes what memory holds in the blocks that somebody may read: digests depend on tokens alone, so equal
// states hold equal ones.
func (y *toy) fingerprint(s *sched.Scheduler) []byte {
	var dst []byte
	for v := range s.Requests {
		if q := y.seqs[v.ID]; q != nil {
			for p := range v.Computed {
				if p/y.blockSize < len(q.table) {
					dst = binary.LittleEndian.AppendUint32(dst, uint32(y.memory[q.table[p/y.blockSize]][p%y.blockSize]))
				}
			}
		}
		dst = append(dst, 0xff)
	}
	var cached []string
	for b := 1; b < len(y.memory); b++ {
		if h, ok := s.Pool().Hash(kv.BlockID(b)); ok {
			cached = append(cached, string(binary.LittleEndian.AppendUint32(h[:2], uint32(y.memory[b][y.blockSize-1]))))
		}
	}
	slices.Sort(cached)
	return append(dst, strings.Join(cached, "")...)
}
