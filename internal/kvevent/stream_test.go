package kvevent_test

import (
	"encoding/binary"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/quire-ai/quire/internal/kvevent"
	"github.com/quire-ai/quire/internal/zmtp"
	"github.com/quire-ai/quire/internal/zmtp/zmtptest"
	"github.com/quire-ai/quire/kv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A reader that is there in time gets batch 0, which clears, and then one batch for each step, in either form.
func TestLive(t *testing.T) {
	for _, form := range []kvevent.Form{kvevent.Map, kvevent.Array} {
		s := open(t, kvevent.Config{Form: form})
		r := newReader(t, s)
		r.join()
		s.Begin(topic, nil)
		r.read()
		if len(r.batch) != 1 || fields(r.batch[0])["type"] != "AllBlocksCleared" || r.next != 1 {
			t.Fatalf("batch 0 is %v", r.batch)
		}
		s.Publish([]kv.Event{stored(0, 1, 2), inRAM(stored(0, 1))})
		r.read()
		s.Publish([]kv.Event{removed(9)}) // nobody knows it: no batch
		s.Publish([]kv.Event{removed(2)})
		r.read()
		if want := map[string]map[uint64]bool{"GPU": {1: true}, "CPU": {1: true}}; !cmp.Equal(r.known, want) || r.asked > 0 {
			t.Errorf("known %v, missed %d; want %v", r.known, r.asked, want)
		}
		if st := s.Stats(); st.Published != 3 || st.Subscribers != 1 || st.Blocks != 1 {
			t.Errorf("%+v", st)
		}
	}
}

// A reader that comes a moment late, as one does that must connect again, is sent batch 0 all the same.
func TestGrace(t *testing.T) {
	s := open(t, kvevent.Config{})
	s.Begin(topic, nil)
	s.Publish([]kv.Event{stored(0, 1)})
	r := newReader(t, s)
	r.join()
	r.read()
	if len(r.batch) != 1 || fields(r.batch[0])["type"] != "AllBlocksCleared" {
		t.Fatalf("the first batch is %v", r.batch)
	}
	if r.read(); !r.known["GPU"][1] || r.asked > 0 {
		t.Errorf("known %v, missed %d", r.known, r.asked)
	}
}

// Peers get what they subscribed to, while they are subscribed.
func TestSubscriptions(t *testing.T) {
	s := open(t, kvevent.Config{Grace: -1})
	s.Begin(topic, nil)
	p, err := zmtptest.Dial(s.Addr(), "SUB")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	all := newReader(t, s)
	all.join()
	publish := func(n uint64) {
		s.Publish([]kv.Event{stored(0, n)})
		all.read()
	}
	publish(1)
	for _, prefix := range []string{"other", topic, "kv@"} {
		if err := p.Subscribe(prefix); err != nil {
			t.Fatal(err)
		}
	}
	publish(2) // is batch 2
	for _, prefix := range []string{topic, "never"} {
		if err := p.Send([]byte("\x00" + prefix)); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Subscribe("other"); err != nil {
		t.Fatal(err)
	}
	publish(3)
	for _, want := range []uint64{2, 3} {
		if m, err := p.Recv(); err != nil || len(m) != 3 || binary.BigEndian.Uint64(m[1]) != want {
			t.Fatalf("message %q, %v; want batch %d", m, err, want)
		}
	}
	for i := range 70 { // more than anybody needs
		if err := p.Subscribe(string(rune('0' + i))); err != nil {
			return
		}
	}
	t.Error("70 subscriptions are accepted")
}

// What the ring holds is replayed as it was; what it does not is replaced by a snapshot, numbered without a gap.
func TestReplay(t *testing.T) {
	s := open(t, kvevent.Config{BufferSteps: 4})
	live := newReader(t, s)
	live.join()
	s.Begin(topic, nil)
	live.read()
	var steps uint64
	step := func(events ...kv.Event) {
		steps++
		s.Publish(events)
		live.read()
	}
	step(stored(0, 1, 2))
	step(stored(2, 3))
	late := newReader(t, s)
	late.replay()
	if !cmp.Equal(late.known, live.known) || late.next != 3 || s.Stats().Replayed != 1 {
		t.Errorf("from the ring: %v up to %d, %+v; want %v", late.known, late.next, s.Stats(), live.known)
	}
	for n := uint64(10); n < 20; n++ {
		step(stored(0, n), inRAM(stored(0, n)))
	}
	step(removed(3))
	for _, r := range []*reader{late, newReader(t, s)} { // one that knows something, one that knows nothing
		r.replay()
		if !cmp.Equal(r.known, live.known) || r.next != steps+1 {
			t.Errorf("snapshot: %v up to %d; want %v up to %d", r.known, r.next, live.known, steps+1)
		}
	}
	if s.Stats().Snapshots != 2 {
		t.Errorf("%+v; want 2 snapshots", s.Stats())
	}
	late.replay() // nothing is missing
	if late.next != steps+1 {
		t.Errorf("a replay of nothing brought batches up to %d", late.next)
	}
}

// A peer of the replay socket that asks nonsense is cut off.
func TestReplayRefuses(t *testing.T) {
	s := open(t, kvevent.Config{})
	s.Begin(topic, nil)
	for _, question := range [][][]byte{{{}, {1, 2, 3}}, {make([]byte, 8)}, {{1}, make([]byte, 8)}, {{}, make([]byte, 8), {}}} {
		p, err := zmtptest.Dial(s.ReplayAddr(), "REQ")
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Send(question...); err != nil {
			t.Fatal(err)
		}
		if m, err := p.Recv(); err == nil {
			t.Errorf("%q is answered %q", question, m)
		}
		p.Close()
	}
}

// A subscriber that does not read costs the others nothing. When it reads again it finds one gap, and a replay heals it.
func TestStalledSubscriber(t *testing.T) {
	file := zmtp.Endpoint{Bind: true, Network: "unix", Address: filepath.Join(t.TempDir(), "q.sock")} // its buffers are small
	s := open(t, kvevent.Config{Endpoint: file, HighWater: 8})
	stalled, live := newReader(t, s), newReader(t, s)
	stalled.join()
	live.join()
	s.Begin(topic, nil)
	live.read()
	big := make([]uint64, 2000)
	parent := uint64(0)
	for n := 0; s.Stats().Behind == 0; n++ { // once the buffers between us are full
		for i := range big {
			big[i] = uint64(n*len(big)+i) + 1
		}
		s.Publish([]kv.Event{stored(parent, big...)})
		live.read()
		parent = big[len(big)-1]
		if n == 1000 {
			t.Fatal("1000 large batches went to a peer that does not read")
		}
	}
	for stalled.next < live.next {
		stalled.read()
	}
	if !cmp.Equal(stalled.known, live.known) {
		t.Errorf("%d blocks are known to the one, %d to the other", len(stalled.known["GPU"]), len(live.known["GPU"]))
	}
	if st := s.Stats(); live.asked != 0 || stalled.asked != 1 || st.Dropped == 0 {
		t.Errorf("missed: %d and %d times, %+v; want 0 and 1", live.asked, stalled.asked, st)
	}
}

// When events come faster than they can be encoded, readers forget: they know less than there is, never more.
func TestOverflow(t *testing.T) {
	s := open(t, kvevent.Config{MaxQueue: 3})
	r := newReader(t, s)
	r.join()
	s.Publish([]kv.Event{stored(0, 1)}) // before Begin nothing is encoded
	s.Publish([]kv.Event{stored(0, 2), stored(0, 3), stored(0, 4)})
	s.Publish([]kv.Event{removed(1), stored(0, 5)})
	s.Begin(topic, nil)
	r.read()
	r.read()
	if want := map[string]map[uint64]bool{"GPU": {5: true}}; !cmp.Equal(r.known, want) || s.Stats().Overflows != 1 {
		t.Errorf("known %v, %+v; want %v", r.known, s.Stats(), want)
	}
	if fields(r.batch[0])["type"] != "AllBlocksCleared" {
		t.Errorf("the batch after the overflow is %v", r.batch)
	}
}
