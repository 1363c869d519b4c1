package kvevent

import (
	"errors"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quire-ai/quire/internal/zmtp"
	"github.com/quire-ai/quire/kv"
)

// Config is the shape of a stream. It is read once, by Open.
type Config struct {
	Endpoint zmtp.Endpoint
	Replay   *zmtp.Endpoint // where missed batches are asked for; nil for nowhere
	Form     Form
	// BufferSteps is the number of batches that can be replayed as they were; 0 means 10,000.
	BufferSteps int
	// HighWater is the number of batches by which a subscriber may lag, but no more than BufferSteps; 0 means 100,000.
	HighWater int
	// Grace is the time after batch 0 in which a subscriber that comes is sent all batches from there: those that knew the
	// process before need time to connect again. 0 means five seconds, negative none.
	Grace time.Duration
	// MaxQueue is the number of events that wait to be encoded; 0 means 100,000.
	MaxQueue int
	// Log may be nil.
	Log *slog.Logger
}

func (c Config) withDefaults() Config {
	set := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	set(&c.BufferSteps, 10_000)
	set(&c.HighWater, 100_000)
	set(&c.MaxQueue, 100_000)
	if c.Grace == 0 {
		c.Grace = 5 * time.Second
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// Stream publishes KV events. Publish has one caller; other methods may be called by any goroutine. Close ends it.
type Stream struct {
	cfg      Config
	pub      *zmtp.Socket
	answerer *zmtp.Socket // nil without a replay endpoint
	ring     *ring
	topic    []byte         // set before the first batch
	wake     chan struct{}  // capacity 1; filled when the queue has something
	stop     chan struct{}  // closed by Close
	running  sync.WaitGroup // the goroutine that encodes

	mu    sync.Mutex // guards what follows; held for copies only, since the engine's loop takes it
	queue []kv.Event
	full  bool // and events were dropped
	drops uint64

	viewing sync.Mutex // guards what follows; taken before the ring's
	view    *view
	out     batch

	replays [replayKinds]atomic.Uint64
}

// Open opens the endpoints. Peers may come from now on; the first batch comes with Begin.
func Open(cfg Config) (*Stream, error) {
	cfg = cfg.withDefaults()
	s := &Stream{
		cfg: cfg, ring: newRing(cfg.BufferSteps), wake: make(chan struct{}, 1), stop: make(chan struct{}),
		view: newView(), out: batch{form: cfg.Form},
	}
	var err error
	if s.pub, err = zmtp.Open(zmtp.Config{Endpoint: cfg.Endpoint, Role: zmtp.Pub, Serve: s.subscribe, Log: cfg.Log}); err != nil {
		return nil, err
	}
	if cfg.Replay == nil {
		return s, nil
	}
	if s.answerer, err = zmtp.Open(zmtp.Config{Endpoint: *cfg.Replay, Role: zmtp.Router, Serve: s.answer, Log: cfg.Log}); err != nil {
		return nil, errors.Join(err, s.pub.Close())
	}
	return s, nil
}

// Addr is where subscribers find the stream; nil if it connects to them.
func (s *Stream) Addr() net.Addr { return s.pub.Addr() }

// ReplayAddr is where missed batches are asked for; nil for nowhere, or if it connects.
func (s *Stream) ReplayAddr() net.Addr {
	if s.answerer == nil {
		return nil
	}
	return s.answerer.Addr()
}

// Begin names the topic and the cache groups of the model, of which none means one with full attention, and publishes batch 0,
// which clears what readers know of the process before. It is called once.
func (s *Stream) Begin(topic string, groups []kv.Group) {
	s.topic = []byte(topic)
	s.viewing.Lock()
	s.out.groups = groups
	s.view.account(&s.out)
	s.ring.append(s.out.payload(now()))
	s.viewing.Unlock()
	s.running.Go(s.run)
}

// Publish takes the events of a step in. It never waits for a reader or the encoder: events that the queue has no room for are
// dropped, and with them all that readers know.
func (s *Stream) Publish(events []kv.Event) {
	s.mu.Lock()
	if len(s.queue)+len(events) > s.cfg.MaxQueue {
		clear(s.queue)
		s.queue, s.full = s.queue[:0], true
		s.drops++
	} else {
		s.queue = append(s.queue, events...)
	}
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// run makes batches of what the queue holds: one a step, or one for several if they end faster than it turns.
func (s *Stream) run() {
	var events []kv.Event
	for {
		select {
		case <-s.wake:
		case <-s.stop:
			return
		}
		s.mu.Lock()
		full := s.full
		events, s.queue, s.full = s.queue, events[:0], false
		s.mu.Unlock()
		if full {
			s.cfg.Log.Warn("KV events came faster than they could be encoded: subscribers are told to forget all blocks",
				slog.Int("max_queue_size", s.cfg.MaxQueue))
		}
		s.publish(events, full)
		clear(events)
	}
}

// publish makes one batch, unless there is nothing to tell.
func (s *Stream) publish(events []kv.Event, forget bool) {
	s.viewing.Lock()
	defer s.viewing.Unlock()
	if forget {
		s.view = newView()
		s.view.account(&s.out)
	}
	for i := range events {
		s.view.apply(&events[i], &s.out)
	}
	if s.out.events > 0 {
		s.ring.append(s.out.payload(now()))
	}
}

// now is the time as batches carry it: seconds since 1970.
func now() float64 { return float64(time.Now().UnixNano()) / 1e9 }

// Close ends the stream and cuts off its peers.
func (s *Stream) Close() error {
	close(s.stop)
	s.running.Wait()
	s.ring.close()
	err := s.pub.Close()
	if s.answerer != nil {
		err = errors.Join(err, s.answerer.Close())
	}
	return err
}

// Stats counts what the stream does.
type Stats struct {
	Published   uint64 // batches
	Blocks      int    // that readers know
	Subscribers int    // that keep up
	Behind      int    // subscribers that lost batches and have not caught up since
	Dropped     uint64 // batches that subscribers lost
	Overflows   uint64 // steps for whose events the queue had no room
	Replayed    uint64 // questions answered with the batches asked for, if there were any
	Snapshots   uint64 // questions answered with a snapshot
}

// Stats returns the state of the moment and the counters.
func (s *Stream) Stats() Stats {
	st := Stats{
		Published: s.ring.length(), Replayed: s.replays[asTheyWere].Load(), Snapshots: s.replays[fromSnapshot].Load(),
	}
	st.Subscribers, st.Behind, st.Dropped = s.ring.readers()
	s.mu.Lock()
	st.Overflows = s.drops
	s.mu.Unlock()
	s.viewing.Lock()
	st.Blocks = len(s.view.blocks)
	s.viewing.Unlock()
	return st
}
