package sched

// Fault is a known bug that tests of checkers put in.
type Fault uint8

// The faults, each as it was published or as upstream has it.
const (
	NoFault          Fault = iota
	FaultPopsFront         // mistral.rs #2043: preempts for the head of the queue, then removes the front by position
	FaultLoadForgets       // vLLM #31583: a preempted request comes back from a load as new
	FaultNoTakeBack        // rule D1 off
	FaultLoadsAgain        // rule D2 off
	FaultNoRecovery        // rule D3 off: vLLM #45406, #57841
	FaultNoReclaim         // rule D4 off
)

// popFrontFault is the first half of FaultPopsFront: it preempts the youngest running request to the front of the queue
// whose head is being considered, and tries again.
func (s *Scheduler) popFrontFault(a allocation) bool {
	if s.cfg.TestOnlyFault != FaultPopsFront || len(s.running) == 0 {
		return false
	}
	victim := s.running[len(s.running)-1]
	s.running = s.running[:len(s.running)-1]
	s.withdraw(victim)
	s.preempt(victim)
	return s.allocate(a)
}
