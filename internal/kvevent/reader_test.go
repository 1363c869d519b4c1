package kvevent_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/quire-ai/quire/internal/kvevent"
	"github.com/quire-ai/quire/internal/zmtp"
	"github.com/quire-ai/quire/internal/zmtp/zmtptest"
	"github.com/quire-ai/quire/kv"
)

const topic = "kv@10.0.0.7:8000@m"

// open opens a stream, on free ports unless its endpoint says otherwise.
func open(t *testing.T, cfg kvevent.Config) *kvevent.Stream {
	t.Helper()
	local := zmtp.Endpoint{Bind: true, Network: "tcp", Address: "127.0.0.1:0"}
	if cfg.Replay = &local; cfg.Endpoint == (zmtp.Endpoint{}) {
		cfg.Endpoint = local
	}
	s, err := kvevent.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// reader is a router as it should be: it applies batches in order, asks for those it missed, and holds the rules that
// llm-d's has.
type reader struct {
	t      *testing.T
	stream *kvevent.Stream
	peer   *zmtptest.Peer
	next   uint64                     // number of the batch it needs
	known  map[string]map[uint64]bool // hashes by medium
	seen   map[uint64]bool            // every hash there ever was
	asked  int                        // times it missed something
	batch  []any                      // events of the last batch
}

func newReader(t *testing.T, s *kvevent.Stream) *reader {
	r := &reader{t: t, stream: s, known: map[string]map[uint64]bool{}, seen: map[uint64]bool{}}
	t.Cleanup(r.leave)
	return r
}

// join connects, or connects again, and subscribes.
func (r *reader) join() {
	r.t.Helper()
	r.leave()
	var err error
	if r.peer, err = zmtptest.Dial(r.stream.Addr(), "SUB"); err == nil {
		err = r.peer.Subscribe("kv@")
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *reader) leave() {
	if r.peer != nil {
		r.peer.Close()
		r.peer = nil
	}
}

// read takes in one live batch, and before it those it missed.
func (r *reader) read() {
	r.t.Helper()
	m, err := r.peer.Recv()
	if err != nil || len(m) != 3 || string(m[0]) != topic || len(m[1]) != 8 {
		r.t.Fatalf("live message %q, %v", m, err)
	}
	number := binary.BigEndian.Uint64(m[1])
	if number > r.next {
		r.replay()
	}
	if number == r.next {
		r.apply(m[2])
	}
	if number >= r.next {
		r.t.Fatalf("batch %d is live, and a replay ended before %d", number, r.next)
	}
}

// replay asks for all from the next batch on.
func (r *reader) replay() {
	r.t.Helper()
	r.asked++
	p, err := zmtptest.Dial(r.stream.ReplayAddr(), "DEALER")
	if err != nil {
		r.t.Fatal(err)
	}
	defer p.Close()
	if err := p.Ask(r.next); err != nil {
		r.t.Fatal(err)
	}
	for {
		m, err := p.Recv()
		if err != nil || len(m) != 4 || len(m[0]) != 0 || len(m[2]) != 8 {
			r.t.Fatalf("replayed message %q, %v", m, err)
		}
		number := binary.BigEndian.Uint64(m[2])
		if number == math.MaxUint64 {
			if len(m[1])+len(m[3]) != 0 {
				r.t.Fatalf("end mark %q", m)
			}
			return
		}
		if number != r.next || string(m[1]) != topic {
			r.t.Fatalf("replayed batch %d of topic %q; want %d of %q", number, m[1], r.next, topic)
		}
		r.apply(m[3])
	}
}

// apply takes a batch in.
func (r *reader) apply(payload []byte) {
	r.t.Helper()
	r.next++
	d := msgpack.NewDecoder(bytes.NewReader(payload))
	v, err := d.DecodeInterface()
	b, ok := v.([]any)
	if err != nil || !ok || len(b) != 3 {
		r.t.Fatalf("batch %v, %v", v, err)
	}
	if seconds, ok := b[0].(float64); !ok || seconds < 1.5e9 || fmt.Sprint(b[2]) != "0" {
		r.t.Fatalf("batch at %v of rank %v", b[0], b[2])
	}
	r.batch = b[1].([]any)
	for _, e := range r.batch {
		r.event(fields(e))
	}
}

// fields returns an event as a map, whichever form it has.
func fields(e any) map[string]any {
	m, ok := e.(map[string]any)
	if ok {
		return m
	}
	names := map[string][]string{
		"BlockStored": {
			"block_hashes", "parent_block_hash", "token_ids", "block_size", "lora_id", "medium", "lora_name", "extra_keys", "group_idx",
			"kv_cache_spec_kind", "kv_cache_spec_sliding_window",
		},
		"BlockRemoved": {"block_hashes", "medium", "group_idx"},
	}
	values := e.([]any)
	m = map[string]any{"type": values[0]}
	for i, v := range values[1:] {
		m[names[values[0].(string)][i]] = v
	}
	return m
}

func (r *reader) event(e map[string]any) {
	r.t.Helper()
	if e["type"] == "AllBlocksCleared" {
		clear(r.known)
		clear(r.seen)
		return
	}
	medium := e["medium"].(string)
	if r.known[medium] == nil {
		r.known[medium] = map[uint64]bool{}
	}
	hashes := e["block_hashes"].([]any)
	switch e["type"] {
	case "BlockRemoved":
		for _, h := range hashes {
			if !r.known[medium][h.(uint64)] && medium == "GPU" { // a snapshot leaves out what lies in memory without its parents
				r.t.Errorf("batch %d removes %x from %s, where it is not", r.next-1, h, medium)
			}
			delete(r.known[medium], h.(uint64))
		}
	case "BlockStored":
		if p := e["parent_block_hash"]; p != nil && !r.seen[p.(uint64)] {
			r.t.Errorf("batch %d stores behind %x, which nobody knows", r.next-1, p)
		}
		if n, size := len(e["token_ids"].([]any)), integer(e["block_size"]); n != size*len(hashes) {
			r.t.Errorf("batch %d stores %d blocks of %d with %d tokens", r.next-1, len(hashes), size, n)
		}
		for _, h := range hashes {
			if r.known[medium][h.(uint64)] {
				r.t.Errorf("batch %d stores %x twice in %s", r.next-1, h, medium)
			}
			r.known[medium][h.(uint64)], r.seen[h.(uint64)] = true, true
		}
	}
}

// integer reads a number of whatever width.
func integer(v any) int {
	n := 0
	fmt.Sscan(fmt.Sprint(v), &n)
	return n
}

// hash is one whose name on the wire is n.
func hash(n uint64) (h kv.Hash) {
	binary.BigEndian.PutUint64(h[24:], n)
	return h
}

// stored is an event of blocks of two tokens: block n holds 10·n and 10·n + 1.
func stored(parent uint64, blocks ...uint64) kv.Event {
	e := kv.Event{Kind: kv.BlockStored}
	if parent != 0 {
		e.Parent, e.HasParent = hash(parent), true
	}
	for _, n := range blocks {
		e.Hashes = append(e.Hashes, hash(n))
		e.Tokens = append(e.Tokens, int32(10*n), int32(10*n+1))
	}
	return e
}

func removed(n uint64) kv.Event {
	return kv.Event{Kind: kv.BlockRemoved, Hashes: []kv.Hash{hash(n)}}
}

// inRAM moves an event to the memory behind the pool, as it tells it: by hashes alone.
func inRAM(e kv.Event) kv.Event {
	return kv.Event{Kind: e.Kind, Medium: kv.InRAM, Hashes: e.Hashes}
}
