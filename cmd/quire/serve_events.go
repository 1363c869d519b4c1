package main

import (
	"cmp"
	"log/slog"
	"net"
	"os"
	"strconv"

	"github.com/quire-ai/quire/internal/config"
	"github.com/quire-ai/quire/internal/kvevent"
	"github.com/quire-ai/quire/internal/llm"
	"github.com/quire-ai/quire/internal/zmtp"
)

// openEvents opens the stream of KV events, nil if nobody wants one. It is opened before the model is loaded, so that routers
// that knew the process before are there for the first batch, which has them forget what it held.
func (cmd *serveCmd) openEvents(log *slog.Logger) (*kvevent.Stream, error) {
	e := cmd.Events.Events()
	if e == nil {
		return nil, nil
	}
	cfg := kvevent.Config{BufferSteps: e.BufferSteps, HighWater: e.HWM, MaxQueue: e.MaxQueueSize, Log: log}
	if cmd.Events.KVEventsFormat == "array" {
		cfg.Form = kvevent.Array
	}
	var err error
	if cfg.Endpoint, err = zmtp.ParseEndpoint(e.Endpoint); err != nil {
		return nil, err
	}
	if e.ReplayEndpoint != "" {
		replay, err := zmtp.ParseEndpoint(e.ReplayEndpoint)
		if err != nil {
			return nil, err
		}
		cfg.Replay = &replay
	}
	if !cfg.Endpoint.Local() || cfg.Replay != nil && !cfg.Replay.Local() {
		log.Warn("KV events hold the token ids of prompts, and whoever reaches their endpoint can read them", slog.Any("endpoint", cfg.Endpoint))
	}
	return kvevent.Open(cfg)
}

// beginEvents names the stream's topic and publishes its first batch.
func beginEvents(s *kvevent.Stream, e *config.EventsConfig, addr net.Addr, m *llm.Model, name string, log *slog.Logger) {
	topic := cmp.Or(e.Topic, eventTopic(addr, name))
	s.Begin(topic, m.Engine.CacheGroups())
	attrs := []any{slog.String("topic", topic), slog.String("endpoint", e.Endpoint)}
	if a := s.Addr(); a != nil {
		attrs = append(attrs, slog.String("at", a.String()))
	}
	if a := s.ReplayAddr(); a != nil {
		attrs = append(attrs, slog.String("replay_at", a.String()))
	}
	log.Info("KV events are published", attrs...)
}

// eventTopic is the topic by which llm-d's router knows whose events these are: kv@, the address and port at which it sends
// requests to us, and the model. In a pod the address is $POD_IP; else it is where we listen or, if that is everywhere, the
// first address that others can reach.
func eventTopic(addr net.Addr, model string) string {
	host, port := "127.0.0.1", "0"
	if tcp, ok := addr.(*net.TCPAddr); ok {
		port = strconv.Itoa(tcp.Port)
		if host = tcp.IP.String(); tcp.IP.IsUnspecified() {
			host = outsideAddress()
		}
	}
	return "kv@" + net.JoinHostPort(cmp.Or(os.Getenv("POD_IP"), host), port) + "@" + model
}

// outsideAddress is the first address of this machine that is not a loopback's.
func outsideAddress() string {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return "127.0.0.1"
	}
	for _, a := range addrs {
		if ip, ok := a.(*net.IPNet); ok && ip.IP.IsGlobalUnicast() {
			return ip.IP.String()
		}
	}
	return "127.0.0.1"
}

func closeEvents(s *kvevent.Stream) error {
	if s == nil {
		return nil
	}
	return s.Close()
}
