package pressure

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quire-ai/quire/internal/bench"
	"github.com/quire-ai/quire/internal/engine"
	"github.com/quire-ai/quire/internal/record"
	"github.com/quire-ai/quire/sched"
)

const (
	maxPreemptions  = 6                   // of one request
	maxRecompute    = 2                   // times the reference
	maxRepeats      = 10                  // of one line of the log
	refusalTime     = time.Second         // in which an impossible request must be refused
	settleTime      = 5 * time.Second     // in which goroutines and connections must be gone
	clientPrefix    = "cmpl-"             // what the server puts before X-Request-Id
	idleCPUShare    = 0.02                // of one core, that an idle server may use
	idleMeasurement = 2 * time.Second     // time over which that is measured
	throughputLine  = "Throughput (T/s) " // how the line of each interval begins
)

// checker judges one wave. Each of its methods adds what it finds to the row, by the numbers of the package comment.
type checker struct {
	*trial
	row      *Row
	workload workload
	requests []request
	records  []*bench.Record
}

func (c *checker) fault(criterion int, format string, args ...any) {
	c.row.Faults = append(c.row.Faults, Fault{criterion, fmt.Sprintf(format, args...)})
}

// answers checks criteria 1 and 2: what each client got.
func (c *checker) answers() {
	for i, r := range c.requests {
		record := c.records[i]
		if r.leaves {
			c.row.Left++
			continue
		}
		c.row.OutputTokens += record.OutputTokens
		switch want := r.fate(c.kvTokens); want {
		case refused:
			c.refusal(i, record)
		default:
			c.answer(i, record, r, want)
		}
	}
	c.row.TokensPerSecond = float64(c.row.OutputTokens) / c.row.Seconds
}

// refusal checks that request i was refused at once, with its length and the limit.
func (c *checker) refusal(i int, record *bench.Record) {
	switch {
	case record.Err == nil:
		c.fault(1, "request %d cannot fit, and was answered", i)
		return
	case record.Status != http.StatusBadRequest:
		c.fault(1, "request %d cannot fit; status %d, want 400: %v", i, record.Status, record.Err)
		return
	case record.Latency > refusalTime:
		c.fault(1, "request %d was refused after %v, want at most %v", i, record.Latency, refusalTime)
	}
	for _, number := range []int{c.requests[i].prompt, c.kvTokens} {
		if !strings.Contains(record.Err.Error(), strconv.Itoa(number)) {
			c.fault(1, "request %d was refused without naming %d: %v", i, number, record.Err)
		}
	}
	c.row.Refused++
}

// answer checks that request i got its tokens, and the same ones as alone.
func (c *checker) answer(i int, record *bench.Record, r request, want fate) {
	switch tokens := r.tokens(c.kvTokens); {
	case record.Err != nil:
		c.fault(1, "request %d: %v", i, record.Err)
		return
	case !record.Done || record.FinishReason != "length":
		c.fault(1, "request %d: done %t, finish_reason %q", i, record.Done, record.FinishReason)
		return
	case record.OutputTokens != tokens || len(record.TokenIDs) != tokens:
		c.fault(1, "request %d: usage says %d tokens and %d came, want %d", i, record.OutputTokens, len(record.TokenIDs), tokens)
		return
	}
	c.row.Answered++
	alone := c.alone[r.key()]
	for at, id := range record.TokenIDs {
		if id != alone.TokenIDs[at] {
			c.fault(2, "request %d: token %d is %d, alone it is %d", i, at, id, alone.TokenIDs[at])
			return
		}
	}
	if want == completes && record.Text != alone.Text {
		c.fault(2, "request %d has the tokens of its solo run, and not its text", i)
		return
	}
	c.row.Equal++
}

// schedule checks criterion 3: the order of ends, preemptions and recomputed tokens.
func (c *checker) schedule(before observation) {
	arrivals, ends := c.host.recorder.since(before.tally)
	c.order(arrivals, ends)
	now := c.settled()
	c.row.Steps = int(now.Steps - before.counters.Steps)
	c.row.Preemptions = int(now.Preemptions - before.counters.Preemptions)
	c.row.Recomputed = int(now.RecomputedTokens - before.counters.RecomputedTokens)
	plain := reference(c.arrived(arrivals, ends), c.kvTokens, c.config.Budget)
	c.row.ReferencePreemptions, c.row.ReferenceRecomputed = int(plain.Preemptions), int(plain.RecomputedTokens)
	if c.row.MaxPreemptions > maxPreemptions {
		c.fault(3, "a request was preempted %d times, want at most %d", c.row.MaxPreemptions, maxPreemptions)
	}
	// Of unlike requests one more preemption can cost a whole one, by the chance of who came first.
	spare := 0
	for _, s := range c.workload.shapes {
		if s != c.workload.shapes[0] {
			spare = max(spare, s.prompt+s.output)
		}
	}
	if most := maxRecompute*c.row.ReferenceRecomputed + spare; c.row.Recomputed > most {
		c.fault(3, "%d tokens were computed again, want at most %d × %d + %d",
			c.row.Recomputed, maxRecompute, c.row.ReferenceRecomputed, spare)
	}
	c.agreement(before, now, ends)
}

// sentAs returns the request that the engine ended.
func (t *trial) sentAs(end engine.FinishInfo) (request, bool) {
	r, ok := t.sent[strings.TrimPrefix(end.ClientID, clientPrefix)]
	return r, ok
}

// order checks that requests of one shape end in the order in which they came. Only one that waited for KV from a tier may
// be overtaken, by the time that took.
func (c *checker) order(arrivals []string, ends []engine.FinishInfo) {
	last := map[shape]int{} // place of arrival of the last that ended
	for _, end := range ends {
		c.row.MaxPreemptions = max(c.row.MaxPreemptions, end.Preemptions)
		r, ok := c.sentAs(end)
		at := slices.Index(arrivals, end.ID)
		switch {
		case !ok:
			c.fault(1, "the engine ended a request %q that was not sent in this wave", end.ClientID)
			continue
		case end.Reason == sched.ReasonAbort: // one that left at once may never have come to the scheduler
			if !r.leaves {
				c.fault(1, "request %q was aborted", end.ClientID)
			}
			continue
		case at < 0:
			c.fault(1, "the engine ended a request %q that never came to the scheduler", end.ClientID)
			continue
		}
		if before, ok := last[r.shape]; ok && at < before && !c.host.recorder.waitedForLoad(end.ID) {
			c.fault(3, "request %q came before another of its shape and ended after it", end.ClientID)
		}
		last[r.shape] = max(last[r.shape], at)
	}
}

// arrived returns the shapes of the wave's requests in the order in which the scheduler saw them, which among requests
// sent at the same moment is a matter of chance.
func (c *checker) arrived(arrivals []string, ends []engine.FinishInfo) []shape {
	byID := map[string]shape{}
	for _, end := range ends {
		if r, ok := c.sentAs(end); ok {
			byID[end.ID] = r.shape
		}
	}
	shapes := make([]shape, 0, len(arrivals))
	for _, id := range arrivals {
		if s, ok := byID[id]; ok {
			shapes = append(shapes, s)
		}
	}
	return shapes
}

// agreement checks criterion 5 as far as a wave shows it: all ways to count preemptions give one number.
func (c *checker) agreement(before observation, now counters, ends []engine.FinishInfo) {
	perRequest := 0
	for _, end := range ends {
		perRequest += end.Preemptions
	}
	seen := c.host.recorder.tally().preempts - before.preempts
	metric := int(now.metricPreemptions - before.counters.metricPreemptions)
	if perRequest != c.row.Preemptions || seen != c.row.Preemptions || metric != c.row.Preemptions {
		c.fault(5, "preemptions: %d by the scheduler, %d by its changes, %d by the requests' ends, %d by /metrics",
			c.row.Preemptions, seen, perRequest, metric)
	}
	if line, n := c.host.log.repeated(maxRepeats); n > 0 {
		c.fault(5, "log line %q is there %d times", line, n)
	}
}

// progress checks criteria 6 and 9: work was done at each step, /health agreed, and the log said so.
func (c *checker) progress(before observation, took time.Duration, stalls []string) {
	if idle := c.host.recorder.tally().idle - before.idle; idle > 0 {
		c.fault(6, "%d steps computed no token", idle)
	}
	if len(stalls) > 0 {
		c.fault(6, "/health answered %s, and %d times not 200 in all", stalls[0], len(stalls))
	}
	lines := 0
	for _, line := range c.host.log.since(before.logLines) {
		if strings.HasPrefix(line, throughputLine) {
			lines++
		}
	}
	// One line may be missing at either end of a wave; a busy machine may be late with a few more.
	if want := int(took/logInterval)*3/4 - 2; lines < want {
		c.fault(9, "%d throughput lines in %.1f s, want at least %d", lines, took.Seconds(), want)
	}
}

// leftovers checks criterion 4 as far as a wave shows it: nothing is held once all have their answer.
func (c *checker) leftovers(before observation) {
	c.host.target.Client.CloseIdleConnections()
	deadline := time.Now().Add(settleTime)
	for runtime.NumGoroutine() > before.goroutines && time.Now().Before(deadline) {
		time.Sleep(20 * time.Millisecond)
	}
	if n := runtime.NumGoroutine(); n > before.goroutines {
		c.fault(4, "%d goroutines, %d before", n, before.goroutines)
	}
	now := c.settled()
	if now.FreeBlocks != now.UsableBlocks || now.Running+now.Waiting+now.Live > 0 {
		c.fault(4, "%d of %d blocks free, %d requests running, %d waiting, %d alive",
			now.FreeBlocks, now.UsableBlocks, now.Running, now.Waiting, now.Live)
	}
	if now.metricRunning+now.metricWaiting+now.metricUsage != 0 {
		c.fault(4, "/metrics: %v running, %v waiting, cache usage %v", now.metricRunning, now.metricWaiting, now.metricUsage)
	}
}

// counters are the engine's state and what /metrics says of it.
type counters struct {
	engine.Snapshot
	metricPreemptions, metricRunning, metricWaiting, metricUsage float64
}

// settled reads the counters until /metrics, which may be a moment behind, has the scheduler's preemptions.
func (t *trial) settled() counters {
	deadline := time.Now().Add(settleTime)
	for {
		now := t.counters()
		if now.metricPreemptions == float64(now.Preemptions) || time.Now().After(deadline) {
			return now
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// counters reads both. A page that cannot be read leaves −1, which no check accepts.
func (t *trial) counters() counters {
	now := counters{t.host.model.Engine.Snapshot(), -1, -1, -1, -1}
	resp, err := t.host.target.Client.Get(t.host.target.BaseURL + "/metrics")
	if err != nil {
		return now
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		name, value, ok := strings.Cut(lines.Text(), "{")
		if !ok {
			continue
		}
		v, err := strconv.ParseFloat(value[strings.LastIndexByte(value, ' ')+1:], 64)
		if err != nil {
			continue
		}
		switch name {
		case "vllm:num_preemptions_total":
			now.metricPreemptions = v
		case "vllm:num_requests_running":
			now.metricRunning = v
		case "vllm:num_requests_waiting":
			now.metricWaiting = v
		case "vllm:kv_cache_usage_perc":
			now.metricUsage = v
		}
	}
	return now
}

// idle measures the process once all is answered (criterion 4), by when the log has its last line (5).
func (t *trial) idle() Setting {
	s := Setting{config: t.config, Preemptions: int(t.host.model.Engine.Snapshot().Preemptions), IdleCPU: idleCPU(idleMeasurement)}
	if s.IdleCPU > idleCPUShare {
		s.fault(4, "the idle process uses %.1f %% of a core", 100*s.IdleCPU)
	}
	if logged := t.host.log.sum("preemptions"); logged != s.Preemptions {
		s.fault(5, "the log speaks of %d preemptions, there were %d", logged, s.Preemptions)
	}
	return s
}

// replay lets a scheduler without a model make all decisions of the setting again (criterion 8).
func (s *Setting) replay(recorded io.Reader) {
	result, err := record.Replay(recorded)
	if err != nil {
		s.fault(8, "replay: %v", err)
		return
	}
	s.Plans, s.Replayed = result.Plans, int(result.Stats.Preemptions)
	if s.Replayed != s.Preemptions {
		s.fault(8, "%d preemptions, replayed %d", s.Preemptions, s.Replayed)
	}
}
