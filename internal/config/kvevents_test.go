package config

import (
	"strings"
	"testing"
)

func TestKVEvents(t *testing.T) {
	cases := []struct {
		args []string
		want EventsConfig // zero for nothing
	}{
		{nil, EventsConfig{}},
		{[]string{"--kv-events=tcp://*:5557"}, EventsConfig{Endpoint: "tcp://*:5557"}},
		{[]string{"--kv-events=tcp://*:0", "--kv-events-replay=tcp://*:0"}, EventsConfig{Endpoint: "tcp://*:0", ReplayEndpoint: "tcp://*:0"}},
		{[]string{`--kv-events-config={"enable_kv_cache_events":false,"publisher":"zmq"}`}, EventsConfig{}},
		{[]string{`--kv-events-config={"enable_kv_cache_events":true,"publisher":"null"}`}, EventsConfig{}},
		{
			[]string{`--kv-events-config={"enable_kv_cache_events":true,"publisher":"zmq","topic":"t","hwm":7}`},
			EventsConfig{EnableKVCacheEvents: true, Publisher: "zmq", Endpoint: "tcp://*:5557", Topic: "t", HWM: 7},
		},
	}
	for _, c := range cases {
		s, err := parse(t, c.args...)
		if err != nil {
			t.Errorf("%v: %v", c.args, err)
			continue
		}
		got := s.Events.Events()
		if got == nil {
			got = &EventsConfig{}
		}
		if *got != c.want {
			t.Errorf("%v: %+v; want %+v", c.args, *got, c.want)
		}
	}
}

func TestKVEventsFaults(t *testing.T) {
	for args, want := range map[string]string{
		"--kv-events=*:5557":                                          `endpoint "*:5557": is not like tcp://*:5557 or ipc:///run/quire.sock`,
		"--kv-events=inproc://x":                                      `"inproc://x": the transport must be tcp or ipc, got inproc`,
		"--kv-events-replay=tcp://*:5558":                             "--kv-events-replay needs --kv-events: there is nothing to replay",
		"--kv-events=tcp://*:1 --no-enable-prefix-caching":            "they need --enable-prefix-caching",
		"--kv-events=tcp://*:1 --kv-events-replay=tcp://*:1":          "they cannot be replayed there too",
		`--kv-events=tcp://*:1 --kv-events-config={}`:                 "leave one or the others out",
		`--kv-events-config={"enable_kv_cache_events":1}`:             "it is a JSON object of enable_kv_cache_events, publisher",
		`--kv-events-config={"hwmm":1}`:                               "hwmm",
		`--kv-events-config={"publisher":"nats"}`:                     `publisher must be zmq or null, got "nats"`,
		`--kv-events-config={"enable_kv_cache_events":true,"hwm":-1}`: "hwm must be in [0, 10000000], where 0 is the default, got -1",
		"--kv-events-format=list":                                     `must be one of "map","array"`,
	} {
		if _, err := parse(t, strings.Fields(args)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q in it", args, err, want)
		}
	}
}
