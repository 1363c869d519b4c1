package sched

import "fmt"

// Rule numbers a documented rule by which decisions differ from vLLM's, where progress or correctness demands it.
// docs/scheduler.md gives the reasons.
type Rule uint8

const (
	// RuleTakeBack (D1): a victim withdrawn from the step it was planned in takes back the hashes that the step would have
	// filled.
	RuleTakeBack Rule = iota + 1

	// RuleLoadedIsLoaded (D2): a request that holds loaded blocks is never looked up again, though its computed count is 0,
	// as that of a one-token prompt is whose only token was loaded. Upstream would load it again, for ever.
	RuleLoadedIsLoaded

	// RuleRecovery (D3): when nothing runs and nothing can arrive, finished loads are promoted wherever they stand, holders
	// of blocks are admitted first, claims on free blocks do not count, and parked holders give their blocks up.
	RuleRecovery

	// RuleReclaim (D4): a lone running request that runs into the blocks of a parked finished load a second time takes them
	// instead of preempting itself.
	RuleReclaim

	// RuleBadIsBad (D5): a block that a load could not fill, or a failed row spoilt, is not hit before it was computed
	// again; of those who counted on it one computes it and the others are preempted; and it leaves the prefix cache if
	// they end first. Upstream lets others hit it meanwhile.
	RuleBadIsBad

	// RuleWaitForFence (D6): of the victims whose blocks a step in flight still writes, so that preempting them makes no room
	// now, a step takes one; then it waits for those blocks.
	RuleWaitForFence

	// RuleSeenIsKept (D7): under a window, a prompt that is loaded whole keeps the blocks that its last token sees, which is
	// computed again. Upstream counts that token as computed when it drops what no window reaches.
	RuleSeenIsKept
)

// String returns the rule's number in docs/scheduler.md.
func (r Rule) String() string { return fmt.Sprintf("D%d", uint8(r)) }

// byRule records that a rule decided something about r.
func (s *Scheduler) byRule(rule Rule, r *request, note string) {
	s.changes = append(s.changes, Change{Kind: Recovered, ID: r.ID, Rule: rule, Note: note})
}
