package config

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/quire-ai/quire/internal/zmtp"
)

// KVEvents says how routers are told which blocks are cached.
type KVEvents struct {
	// * and :: listen, other addresses connect, as in vLLM; @tcp://10.0.0.7:5557 listens there. They hold the prompts' token ids.
	KVEvents string `name:"kv-events" placeholder:"ENDPOINT" help:"Publish KV events for routers at a ZeroMQ endpoint, such as tcp://*:5557."`
	// Needs KVEvents.
	KVEventsReplay string `name:"kv-events-replay" placeholder:"ENDPOINT" help:"Endpoint where routers ask for events they missed."`
	// array is vLLM's form before June 2026, which AIBrix reads.
	KVEventsFormat string `name:"kv-events-format" default:"map" enum:"map,array" help:"Form of events on the wire."`
	// Excludes KVEvents and KVEventsReplay.
	KVEventsConfig *EventsConfig `name:"kv-events-config" placeholder:"JSON" help:"The same as vLLM's JSON, with sizes and topic."`
}

// EventsConfig is vLLM's configuration of KV events. Zero sizes take the default.
type EventsConfig struct {
	EnableKVCacheEvents bool   `json:"enable_kv_cache_events"`
	Publisher           string `json:"publisher"`       // zmq, or null for none; empty is zmq
	Endpoint            string `json:"endpoint"`        // empty is tcp://*:5557
	ReplayEndpoint      string `json:"replay_endpoint"` // empty is none
	BufferSteps         int    `json:"buffer_steps"`    // batches that can be replayed
	HWM                 int    `json:"hwm"`             // batches by which a subscriber may lag
	MaxQueueSize        int    `json:"max_queue_size"`  // events that wait to be encoded
	Topic               string `json:"topic"`           // empty is kv@ADDRESS:PORT@MODEL
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (c *EventsConfig) UnmarshalText(text []byte) error {
	type object EventsConfig // without this method
	if err := json.Unmarshal(text, (*object)(c), json.RejectUnknownMembers(true)); err != nil {
		return fmt.Errorf("%w: it is a JSON object of enable_kv_cache_events, publisher, endpoint, replay_endpoint, buffer_steps, hwm, "+
			"max_queue_size and topic", err)
	}
	return nil
}

// Events returns what is to be published, nil for nothing, from whichever flags say so. It may be called after Validate.
func (c *KVEvents) Events() *EventsConfig {
	switch {
	case c.KVEvents != "":
		return &EventsConfig{Endpoint: c.KVEvents, ReplayEndpoint: c.KVEventsReplay}
	case c.KVEventsConfig == nil || !c.KVEventsConfig.EnableKVCacheEvents || c.KVEventsConfig.Publisher == "null":
		return nil
	}
	e := *c.KVEventsConfig
	if e.Endpoint == "" {
		e.Endpoint = "tcp://*:5557"
	}
	return &e
}

// validate reports every fault of the flags about KV events.
func (c *KVEvents) validate(prefixCaching bool) error {
	var errs []error
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if c.KVEventsConfig != nil && c.KVEvents+c.KVEventsReplay != "" {
		fault("--kv-events-config says all that --kv-events and --kv-events-replay say: leave one or the others out")
		return errors.Join(errs...)
	}
	if c.KVEventsReplay != "" && c.KVEvents == "" {
		fault("--kv-events-replay needs --kv-events: there is nothing to replay")
	}
	if j := c.KVEventsConfig; j != nil && j.Publisher != "" && j.Publisher != "zmq" && j.Publisher != "null" {
		fault("--kv-events-config: publisher must be zmq or null, got %q", j.Publisher)
	}
	e := c.Events()
	if e == nil {
		return errors.Join(errs...)
	}
	if !prefixCaching {
		fault("KV events tell what the prefix cache holds: they need --enable-prefix-caching")
	}
	for _, endpoint := range []string{e.Endpoint, e.ReplayEndpoint} {
		if endpoint == "" {
			continue
		}
		if _, err := zmtp.ParseEndpoint(endpoint); err != nil {
			fault("KV events: %w", err)
		}
	}
	if e.Endpoint == e.ReplayEndpoint && !strings.HasSuffix(e.Endpoint, ":0") {
		fault("KV events are published at %s: they cannot be replayed there too", e.Endpoint)
	}
	for _, f := range []struct {
		name  string
		value int
	}{{"buffer_steps", e.BufferSteps}, {"hwm", e.HWM}, {"max_queue_size", e.MaxQueueSize}} {
		if f.value < 0 || f.value > maxEventSize {
			fault("--kv-events-config: %s must be in [0, %d], where 0 is the default, got %d", f.name, maxEventSize, f.value)
		}
	}
	return errors.Join(errs...)
}

// maxEventSize bounds what --kv-events-config may ask memory for.
const maxEventSize = 10_000_000
