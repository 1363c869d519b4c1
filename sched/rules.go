package sched

// The rules by which decisions differ from vLLM's, where progress or correctness demands it. docs/scheduler.md gives
// their reasons.
const (
	// RuleTakeBack: a victim withdrawn from the step it was planned in takes back the hashes that the step would have
	// filled.
	RuleTakeBack = "D1"

	// RuleLoadedIsLoaded: a request that holds loaded blocks is never looked up again, though its computed count is 0, as
	// that of a one-token prompt is whose only token was loaded. Upstream would load it again, for ever.
	RuleLoadedIsLoaded = "D2"

	// RuleRecovery: when nothing runs and nothing can arrive, finished loads are promoted wherever they stand, holders of
	// blocks are admitted first, claims on free blocks do not count, and parked holders give their blocks up.
	RuleRecovery = "D3"

	// RuleReclaim: a lone running request that runs into the blocks of a parked finished load takes them instead of
	// preempting itself.
	RuleReclaim = "D4"

	// RuleBadIsBad: a block that a load could not fill, or a failed row spoilt, is not hit before it was computed again;
	// everybody who counted on it computes it; and it leaves the prefix cache if they end first. Upstream has one of them
	// compute it, over as many steps as that takes, while others hit it.
	RuleBadIsBad = "D5"

	// RuleDrainFirst: a victim whose blocks a step in flight still writes is drained before it is preempted.
	RuleDrainFirst = "D6"
)
