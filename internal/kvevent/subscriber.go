package kvevent

import (
	"bytes"
	"encoding/binary"
	"sync"

	"github.com/quire-ai/quire/internal/zmtp"
)

// maxSubscriptions bounds what a peer may subscribe to.
const maxSubscriptions = 64

// subscriber is a peer of the publishing socket. One goroutine reads its subscriptions; one sends, from the first on.
type subscriber struct {
	conn  *zmtp.Conn
	place *cursor // nil before the first subscription

	mu       sync.Mutex // guards what follows
	prefixes map[string]int
}

// subscribe serves one peer until it leaves or breaks a bound.
func (s *Stream) subscribe(c *zmtp.Conn) {
	sub := &subscriber{conn: c, prefixes: map[string]int{}}
	var sending sync.WaitGroup
	for {
		message, err := c.Read()
		if err != nil || !sub.note(message[0]) {
			break
		}
		if sub.place == nil && len(sub.prefixes) > 0 {
			sub.place = s.ring.open(s.cfg.HighWater, s.cfg.Grace)
			sending.Go(func() { sub.send(s) })
		}
	}
	if sub.place != nil {
		sub.place.close()
	}
	_ = c.Close() // whatever is being sent ends here
	sending.Wait()
}

// note takes in one subscription, or takes one back. It returns false if there are too many.
func (sub *subscriber) note(m []byte) bool {
	if len(m) == 0 {
		return true // nothing that we know
	}
	sub.mu.Lock()
	defer sub.mu.Unlock()
	switch prefix := string(m[1:]); m[0] {
	case zmtp.Subscribe:
		sub.prefixes[prefix]++
	case zmtp.Unsubscribe:
		if sub.prefixes[prefix]--; sub.prefixes[prefix] <= 0 {
			delete(sub.prefixes, prefix)
		}
	}
	return len(sub.prefixes) <= maxSubscriptions
}

func (sub *subscriber) wants(topic []byte) bool {
	sub.mu.Lock()
	defer sub.mu.Unlock()
	for prefix := range sub.prefixes {
		if bytes.HasPrefix(topic, []byte(prefix)) {
			return true
		}
	}
	return false
}

// send sends what the ring gets, at the pace of the peer.
func (sub *subscriber) send(s *Stream) {
	for {
		batches, ok := sub.place.read()
		if !ok {
			return
		}
		if !sub.wants(s.topic) {
			continue
		}
		for _, b := range batches {
			if err := sub.conn.Write(s.topic, binary.BigEndian.AppendUint64(nil, b.number), b.payload); err != nil {
				return
			}
		}
		if err := sub.conn.Flush(); err != nil {
			return
		}
	}
}
