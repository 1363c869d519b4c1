package kvevent

import (
	"encoding/binary"
	"fmt"
	"log/slog"
	"math"

	"github.com/quire-ai/quire/internal/zmtp"
)

// How a question for batches was answered.
const (
	asTheyWere = iota
	fromSnapshot
	replayKinds
)

// answer serves a peer of the replay socket until it leaves or asks something else.
func (s *Stream) answer(c *zmtp.Conn) {
	for {
		question, err := c.Read()
		if err != nil {
			return
		}
		start, err := parseQuestion(question)
		if err != nil {
			s.cfg.Log.Debug("replay refused", slog.Any("peer", c.RemoteAddr()), slog.Any("error", err))
			return
		}
		if s.replay(c, start) != nil {
			return // the peer has left
		}
	}
}

// parseQuestion reads the number of the first batch wanted: an empty frame, as REQ sockets put it, and eight bytes.
func parseQuestion(frames [][]byte) (uint64, error) {
	if len(frames) != 2 || len(frames[0]) != 0 || len(frames[1]) != 8 {
		return 0, fmt.Errorf("question of %d frames is not an empty one and a number of 8 bytes", len(frames))
	}
	return binary.BigEndian.Uint64(frames[1]), nil
}

// replay sends every batch from start on, and the end mark. If the ring no longer has the first, batch start is a snapshot
// instead, and those after it, whose changes it includes, are empty.
func (s *Stream) replay(c *zmtp.Conn, start uint64) error {
	batches, ok := s.ring.since(start)
	if ok {
		s.replays[asTheyWere].Add(1)
		for _, b := range batches {
			if err := s.send(c, b.number, b.payload); err != nil {
				return err
			}
		}
		return end(c)
	}
	s.replays[fromSnapshot].Add(1)
	snapshot, next := s.snapshot()
	if err := s.send(c, start, snapshot); err != nil {
		return err
	}
	empty := (&batch{}).payload(now())
	for number := start + 1; number < next; number++ {
		if err := s.send(c, number, empty); err != nil {
			return err
		}
	}
	return end(c)
}

// snapshot returns a batch that tells all that readers know now, and the number of the batch that comes next.
func (s *Stream) snapshot() (payload []byte, next uint64) {
	s.viewing.Lock()
	defer s.viewing.Unlock()
	s.view.account(&s.out)
	return s.out.payload(now()), s.ring.length()
}

func (s *Stream) send(c *zmtp.Conn, number uint64, payload []byte) error {
	return c.Write(nil, s.topic, binary.BigEndian.AppendUint64(nil, number), payload)
}

// end sends the mark behind the last batch.
func end(c *zmtp.Conn) error {
	if err := c.Write(nil, nil, binary.BigEndian.AppendUint64(nil, math.MaxUint64), nil); err != nil {
		return err
	}
	return c.Flush()
}
