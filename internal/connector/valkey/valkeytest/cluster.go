package valkeytest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// slots is the number of hash slots of a cluster.
const slots = 16384

// Cluster is a cluster of three servers without replicas.
type Cluster struct {
	// URL is that of one node, for a client that is told it is of a cluster.
	URL   string
	Nodes []*Server

	t       testing.TB
	clients []*redis.Client
	ids     []string
}

// StartCluster starts a cluster whose nodes share the slots evenly. It ends with the test.
func StartCluster(t testing.TB) *Cluster {
	t.Helper()
	c := &Cluster{t: t}
	var buses []int
	for range 3 {
		bus := freePort(t)
		s := Start(t, "--cluster-enabled", "yes", "--cluster-port", fmt.Sprint(bus), "--cluster-require-full-coverage", "no")
		client := redis.NewClient(&redis.Options{Addr: fmt.Sprintf("127.0.0.1:%d", s.port)})
		t.Cleanup(func() { _ = client.Close() })
		c.Nodes, c.clients, buses = append(c.Nodes, s), append(c.clients, client), append(buses, bus)
	}
	c.URL = c.Nodes[0].URL + "?cluster=true"
	ctx := context.Background()
	for i, client := range c.clients {
		c.do(client, "CLUSTER", "ADDSLOTSRANGE", i*slots/3, (i+1)*slots/3-1)
		c.ids = append(c.ids, client.Do(ctx, "CLUSTER", "MYID").String())
		_, c.ids[i], _ = strings.Cut(c.ids[i], ": ")
		if i > 0 {
			c.do(c.clients[0], "CLUSTER", "MEET", "127.0.0.1", c.Nodes[i].port, buses[i])
		}
	}
	for deadline := time.Now().Add(30 * time.Second); !c.agreed(ctx); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("no cluster within 30 s: %v", c.clients[0].ClusterInfo(ctx))
		}
	}
	return c
}

// agreed tells whether every node knows all slots.
func (c *Cluster) agreed(ctx context.Context) bool {
	for _, client := range c.clients {
		info := client.ClusterInfo(ctx).Val()
		if !strings.Contains(info, "cluster_state:ok") || !strings.Contains(info, "cluster_slots_ok:16384") {
			return false
		}
	}
	return true
}

// Move gives the slot of a key, and what is in it, to another node: clients that ask the old one are sent to the new one.
func (c *Cluster) Move(key string) {
	c.t.Helper()
	ctx := context.Background()
	slot := int(c.clients[0].ClusterKeySlot(ctx, key).Val())
	from := slot * 3 / slots
	to := (from + 1) % 3
	c.do(c.clients[to], "CLUSTER", "SETSLOT", slot, "IMPORTING", c.ids[from])
	c.do(c.clients[from], "CLUSTER", "SETSLOT", slot, "MIGRATING", c.ids[to])
	for _, k := range c.clients[from].ClusterGetKeysInSlot(ctx, slot, 1000).Val() {
		c.do(c.clients[from], "MIGRATE", "127.0.0.1", c.Nodes[to].port, k, 0, 5000)
	}
	for _, i := range []int{to, from} {
		c.do(c.clients[i], "CLUSTER", "SETSLOT", slot, "NODE", c.ids[to])
	}
}

// Keys counts the keys of each node.
func (c *Cluster) Keys() []int64 {
	var n []int64
	for _, client := range c.clients {
		n = append(n, client.DBSize(context.Background()).Val())
	}
	return n
}

func (c *Cluster) do(client *redis.Client, args ...any) {
	c.t.Helper()
	if err := client.Do(context.Background(), args...).Err(); err != nil {
		c.t.Fatalf("%v: %v", args, err)
	}
}
